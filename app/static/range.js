// A slider over the positions of a table, as the view follows it: its aria-valuetext is the position.

function slider({ name, label, positions, texts, at }) {
  const box = document.createElement("div");
  box.className = `st-key-${name} kv-range`;
  const head = document.createElement("label"), shown = document.createElement("b"), input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, max: positions.length - 1, step: 1, value: at, id: `range-${name}` });
  const show = () => {
    shown.textContent = texts[+input.value];
    input.setAttribute("aria-valuetext", positions[+input.value]);
  };
  input.addEventListener("input", show);
  show();
  head.append(label, shown);
  head.htmlFor = input.id;
  box.append(head, input);
  return box;
}

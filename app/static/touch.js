// A finger that comes down on a slider may be about to scroll the page: the slider hears of it once the finger has moved
// along it, or was lifted where it came down. A finger that moves across scrolls, and changes nothing.

const TRACK = ".stSlider", SLOP = 6; // pixels that a finger moves before it is known which way
let held; // the press that the slider has not heard of

function release() {
  const { target, event } = held;
  held = undefined;
  const { pointerId, pointerType, clientX, clientY, isPrimary } = event;
  const told = { bubbles: true, cancelable: true, composed: true, button: 0, buttons: 1, pointerId, pointerType, clientX, clientY, isPrimary };
  target.dispatchEvent(Object.assign(new PointerEvent("pointerdown", told), { ofKv: true }));
}

const moved = event => [Math.abs(event.clientX - held.event.clientX), Math.abs(event.clientY - held.event.clientY)];
const ours = event => held && event.pointerId === held.event.pointerId;
const on = (kind, act) => addEventListener(kind, act, { capture: true, passive: true });

on("pointerdown", event => {
  if (event.pointerType !== "touch" || event.ofKv || !event.target.closest?.(TRACK)) return;
  event.stopImmediatePropagation();
  held = { target: event.target, event };
});
on("touchstart", event => event.target.closest?.(TRACK) && event.stopImmediatePropagation());
on("pointermove", event => {
  if (!ours(event)) return;
  const [along, across] = moved(event);
  if (along >= SLOP && along > across) release();
});
on("pointerup", event => {
  if (!ours(event)) return;
  if (Math.max(...moved(event)) < SLOP) release();
  else held = undefined;
});
on("pointercancel", event => { if (ours(event)) held = undefined; });

// What a word means stands in its title, which only a mouse gets to see: a press shows it below the word until the next one.
let said;
on("pointerdown", () => said?.remove());
on("scroll", () => said?.remove());
on("click", ({ target }) => {
  const word = target.closest?.("abbr[title]");
  if (!word) return;
  said = Object.assign(document.createElement("div"), { className: "kv-meaning", role: "status", textContent: word.title });
  document.body.append(said);
  const { left, bottom } = word.getBoundingClientRect();
  said.style.top = `${bottom + 6}px`;
  said.style.left = `${Math.max(12, Math.min(left, innerWidth - said.offsetWidth - 12))}px`;
});

// What was typed and refused stays in its field; coming back to it, the next thing typed takes its place.
on("focusin", ({ target }) => {
  if (target.matches?.('[class*="st-key-type_"] input')) target.select();
});

// On a phone the button that pins stands below everything: what it makes, at the head of the page, comes into sight.
on("click", ({ target }) => {
  if (innerWidth > 640 || !target.closest?.(".st-key-do_pin")) return;
  const seen = () => {
    const made = document.querySelector(".st-key-pinned_view");
    made?.scrollIntoView({ block: "center", behavior: "instant" });
    return made;
  };
  if (seen()) return;
  const waiting = new MutationObserver(() => seen() && waiting.disconnect());
  waiting.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => waiting.disconnect(), 3_000);
});

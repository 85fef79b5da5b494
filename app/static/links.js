// A link to another scenario or view of the page is followed in place, as back and forward are: nothing is loaded anew.
// The run sees by `go` that the address is news to it. The page's own script, which tells the run, hears of popstate
// after this one: it starts later, and all that listen on the window are told in the order in which they began to.

const TRIP = "go";
const base = () => new URL(".", document.baseURI).pathname;

// Whether the browser is to do what it does with any link.
function elsewhere(link, event) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return true;
  if (link.hasAttribute("download") || (link.target && link.target !== "_self") || link.origin !== location.origin) return true;
  const name = link.pathname.startsWith(base()) ? link.pathname.slice(base().length) : "/";
  const live = document.querySelector("[data-test-connection-state=CONNECTED]");
  return /[/.]/.test(name) || link.hash !== "" || link.href === location.href || !live;
}

function readdress(change) {
  const there = new URLSearchParams(location.search);
  change(there);
  history.replaceState(history.state, "", location.pathname + (there.size ? `?${there}` : "") + location.hash);
}

let trips = 0;
function arrive() {
  if (location.hash) return; // a place on the page
  readdress(there => there.set(TRIP, `${Date.now()}.${(trips += 1)}`));
  setTimeout(readdress, 0, there => there.delete(TRIP));
}

if (!/[?&]embed=true/.test(location.search)) {
  addEventListener("popstate", arrive);
  document.addEventListener("click", event => {
    const link = event.target.closest?.("[data-testid=stMain] a[href], .kv-presets a[href]");
    if (!link || elsewhere(link, event)) return;
    event.preventDefault();
    document.querySelector(".st-key-presets button[aria-expanded=true]")?.click();
    history.pushState(null, "", link.href);
    dispatchEvent(new PopStateEvent("popstate"));
    document.querySelector("[data-testid=stMain]").scrollTo({ top: 0, behavior: "instant" });
    const answer = document.querySelector("h1");
    answer.tabIndex = -1;
    answer.focus({ preventScroll: true });
  });
}

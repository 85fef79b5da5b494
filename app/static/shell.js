// Says where the server is before the page's own script asks: views have paths of their own, and
// without this the script first looks for the server below each of them.
{
  const base = new URL(".", document.currentScript.src);
  base.pathname = base.pathname.replace(/app\/static\/$/, "");
  window.__streamlit = { ...window.__streamlit, BACKEND_BASE_URL: base.href, MAIN_PAGE_BASE_URL: base.href };
}

// The page's own script asks for a font of signs, 0.4 MB, before any is shown. The signs of every view are drawn by the page's
// rules; the font comes when another one is there.
const fonts = document.fonts.load.bind(document.fonts);
document.fonts.load = (font, ...more) => (font.includes("Material Symbols") ? Promise.resolve([]) : fonts(font, ...more));

// The library that draws is run while the server makes the first answer: neither after it, nor before the page has asked.
function drawer() {
  const link = document.querySelector("link[rel=preload][as=script]");
  if (!link || globalThis.liveviewDrawer) return;
  globalThis.liveviewDrawer = new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: link.href });
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => { globalThis.liveviewDrawer = undefined; reject(Error(`${link.href} did not load`)); };
    document.head.append(script);
  });
  globalThis.liveviewDrawer.catch(() => {}); // whoever draws asks again
}

// A session is closed with these codes when all places are taken, and when it is no more; the page, loaded anew, says so
// or starts from its address.
globalThis.WebSocket = class extends WebSocket {
  constructor(...args) {
    super(...args);
    this.addEventListener("close", ({ code }) => { if (code === 1013 || code === 4001) location.reload(); });
  }

  send(data) {
    super.send(data);
    drawer();
  }
};

// Offers the date translator. Nothing of it is fetched before the reader asks for it, or follows a link that shows it.

/** @param {HTMLElement} element */
function offer(element) {
  const { script, style, size } = element.dataset;
  const button = document.createElement("button"),
    said = document.createElement("p"),
    box = document.createElement("div");
  let tries = 0;
  box.className = "attn-offer";
  Object.assign(button, { type: "button", textContent: `Load the translator (${size} kB)`, onclick: load });
  said.setAttribute("role", "status");
  box.append(button, said);
  element.append(box);
  if (location.hash.startsWith("#dates?")) load();

  function load() {
    said.textContent = "Loading…";
    const code = document.createElement("script"), look = document.createElement("link");
    const again = tries++ ? `&again=${tries}` : ""; // no copy that is cut off
    code.onload = () =>
      customElements.get("attention-dates") || fail("Only part of the translator arrived, so it was not started.");
    code.onerror = () => fail("The translator could not be fetched. Check your connection.");
    Object.assign(look, { rel: "stylesheet", href: style });
    code.src = script + again;
    document.head.append(look, code);
  }

  function fail(why) {
    said.textContent = `${why} Press the button to try again; the rest of the page works without it.`;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  /** @type {NodeListOf<HTMLElement>} */
  const elements = document.querySelectorAll("attention-dates");
  elements.forEach(offer);
});

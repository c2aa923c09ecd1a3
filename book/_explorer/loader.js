// Offers a model that runs in the page. None of it is fetched before the reader asks for it. A link to what a
// small model did counts as asking; a model of several megabytes waits for the button.

/** @param {HTMLElement} element */
function offer(element) {
  const { script, size, name, prefix = " ", warning = "" } = element.dataset;
  const button = document.createElement("button"),
    said = document.createElement("p"),
    box = document.createElement("div");
  const isPhone = matchMedia("(pointer: coarse), (max-width: 40rem)").matches;
  let tries = 0;
  box.className = "attn-offer";
  Object.assign(button, { type: "button", textContent: `Load the ${name} (${size})`, onclick: load });
  said.setAttribute("role", "status");
  said.textContent = isPhone ? warning : "";
  box.append(button, said);
  element.append(box);
  if (location.hash.startsWith(prefix)) {
    if (warning) element.scrollIntoView({ block: "center" });
    else load();
  }

  function load() {
    said.textContent = "Loading…";
    const code = document.createElement("script");
    const again = tries++ ? `&again=${tries}` : ""; // so that the browser does not reuse a truncated copy
    code.onload = () =>
      customElements.get(element.localName) || fail(`Only part of the ${name} arrived, so it was not started.`);
    code.onerror = () => fail(`The ${name} could not be fetched. Check your connection.`);
    code.src = script + again;
    document.head.append(code);
  }

  function fail(why) {
    said.textContent = `${why} Press the button to try again; the rest of the page works without it.`;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  /** @type {NodeListOf<HTMLElement>} */
  const elements = document.querySelectorAll("attention-dates, attention-decoder, attention-minilm");
  elements.forEach(offer);
});

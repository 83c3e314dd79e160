// Pictures: moved by dragging and by keys, made larger and smaller, drawn anew when a run has news.
"use strict";
(() => {
  const PATIENCE = 2000; // milliseconds between two drawings
  const canvas = () => document.querySelector("[data-canvas]");
  const picture = () => canvas()?.querySelector("svg");
  let scale = 1;

  function zoom(by) {
    const box = canvas(), svg = picture();
    if (!svg) return;
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const before = scale;
    const room = parseFloat(getComputedStyle(box).maxHeight) || box.clientHeight;
    scale = by ? Math.min(4, Math.max(0.05, scale * by)) : Math.min(1, (box.clientWidth - 2) / width, (room - 4) / height);
    const x = (box.scrollLeft + box.clientWidth / 2) / before, y = (box.scrollTop + box.clientHeight / 2) / before;
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    box.scrollTo(x * scale - box.clientWidth / 2, y * scale - box.clientHeight / 2);
  }
  // A large picture begins where there is something to see: the selected box, the first found, or the first.
  function reveal() {
    const box = canvas(), svg = picture(), all = [...svg?.querySelectorAll("a.box") ?? []];
    const found = svg?.querySelector("a.dim") && all.find((one) => !one.matches(".dim"));
    const first = svg?.querySelector("a[aria-current]") ?? found ?? all[0];
    if (!first) return;
    const at = first.getBoundingClientRect(), room = box.getBoundingClientRect();
    box.scrollBy(at.x + at.width / 2 - room.x - room.width / 2, at.y + at.height / 2 - room.y - room.height / 2);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) zoom(Number(button.dataset.zoom));
    const box = event.target.closest("svg a[data-step]");
    if (!box || event.ctrlKey || event.metaKey || event.shiftKey || !document.getElementById("drawer")) return;
    event.preventDefault();
    select(box);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.("[data-canvas]") || event.ctrlKey || event.metaKey) return;
    const by = { "+": 1.25, "=": 1.25, "-": 0.8, 0: 0 }[event.key];
    if (by === undefined) return;
    zoom(by);
    event.preventDefault();
  });
  document.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !event.target.closest("[data-canvas]")) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 0.9);
  }, { passive: false });
  document.addEventListener("pointerdown", (event) => {
    const box = event.target.closest("[data-canvas]");
    if (!box || event.button || event.target.closest("a, button, input")) return;
    if (event.target.closest("svg.timeline g, [data-axis]")) { choose(event); return; }
    let { clientX: x, clientY: y } = event;
    const move = (at) => { box.scrollBy(x - at.clientX, y - at.clientY); x = at.clientX; y = at.clientY; };
    const end = () => { box.classList.remove("held"); removeEventListener("pointermove", move); removeEventListener("pointerup", end); };
    box.classList.add("held");
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  });

  // A drag over the axis of a timeline shows the time that was chosen.
  function choose(event) {
    const svg = event.target.closest("svg"), begun = place(svg, event);
    const mark = document.createElementNS(svg.namespaceURI, "rect");
    mark.setAttribute("class", "chosen");
    svg.append(mark);
    const span = (at) => [begun, place(svg, at)].sort((a, b) => a - b);
    const move = (at) => {
      const [left, right] = span(at);
      for (const [name, value] of Object.entries({ x: left, width: right - left, y: 0, height: "100%" })) mark.setAttribute(name, value);
    };
    const end = (at) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      mark.remove();
      const [left, right] = span(at);
      if (right - left < 8) return;
      const address = new URL(location.href);
      address.searchParams.set("from", second(svg, left));
      address.searchParams.set("to", second(svg, right));
      address.searchParams.delete("page");
      location.assign(address);
    };
    event.preventDefault();
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  }
  const place = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
  function second(svg, x) {
    const knots = svg.dataset.knots.split(" ").map((one) => one.split(":").map(Number));
    const at = Math.max(1, knots.findIndex(([where]) => where >= x));
    const [[left, from], [right, to]] = [knots[at - 1], knots[at] ?? knots[at - 1]];
    const share = right > left ? (Math.min(Math.max(x, left), right) - left) / (right - left) : 0;
    return (from + (to - from) * share).toFixed(3);
  }

  // One selection: the step that is chosen in a picture is the one beside it.
  function select(box) {
    const href = box.getAttribute("href"), run = location.pathname.split("/")[2];
    for (const one of document.querySelectorAll("svg a[aria-current]")) one.removeAttribute("aria-current");
    box.setAttribute("aria-current", "true");
    history.pushState(null, "", href);
    window.htmx.ajax("GET", `/runs/${run}/step?step=${encodeURIComponent(box.dataset.step)}`, { target: "#drawer", swap: "innerHTML" });
  }

  // Something new: the same picture with other states. Nothing in it moves.
  let due = 0, asked = 0;
  document.addEventListener("holdfast:news", () => {
    if (due || !document.querySelector("[data-fresh]")) return;
    due = setTimeout(fresh, Math.max(0, asked + PATIENCE - Date.now()));
  });
  async function fresh() {
    due = 0;
    asked = Date.now();
    const old = document.querySelector("[data-fresh]");
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } });
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    const made = holder.content.getElementById(old.id);
    if (!answer.ok || !made || old.contains(document.activeElement) && document.activeElement.matches("input")) return;
    const box = canvas(), at = [box?.scrollLeft, box?.scrollTop], focused = document.activeElement?.getAttribute?.("aria-label");
    old.replaceWith(made);
    if (scale !== 1) zoom(1);
    if (box) canvas().scrollTo(...at);
    if (focused) [...made.querySelectorAll("a")].find((one) => one.getAttribute("aria-label")?.split(":")[0] === focused.split(":")[0])?.focus({ preventScroll: true });
    window.htmx?.process(made);
  }
  reveal();
})();

// Behaviour of the page, by attributes: data-live, data-keys, data-copy, data-compare, data-post, data-ran.
"use strict";
(() => {
  document.documentElement.classList.add("scripted"); // what only works with scripts is shown now
  const SPOKEN = 5000; // milliseconds between two sentences for a voice
  const told = () => document.getElementById("told");

  // --- a voice is told where a run stands, seldom ---
  let last = 0, later = 0, words = "";
  function speak(text, now) {
    words = text;
    const wait = last + SPOKEN - Date.now();
    if (now || wait <= 0) {
      clearTimeout(later);
      later = 0;
      last = Date.now();
      if (told()) told().textContent = words;
    } else if (!later) {
      later = setTimeout(() => { later = 0; speak(words, true); }, wait);
    }
  }

  // --- what changes, as it changes ---
  let source = null;
  function take(html) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    for (const fresh of [...holder.content.querySelectorAll("[id]")]) {
      const old = document.getElementById(fresh.id);
      if (!old || fresh.parentElement?.closest("[id]")) continue;
      if (old.outerHTML === fresh.outerHTML) continue;
      const focus = old.contains(document.activeElement) ? path(old, document.activeElement) : null;
      const ticked = [...old.querySelectorAll("input:checked")].map((one) => one.value);
      old.replaceWith(fresh);
      for (const one of fresh.querySelectorAll("input[type=checkbox]")) one.checked = ticked.includes(one.value);
      if (old.classList.contains("at")) fresh.classList.add("at");
      if (focus) find(fresh, focus)?.focus({ preventScroll: true });
      if (window.htmx) window.htmx.process(fresh);
    }
  }
  const path = (root, element) => {
    const steps = [];
    for (let here = element; here !== root; here = here.parentElement) steps.unshift([...here.parentElement.children].indexOf(here));
    return steps;
  };
  const find = (root, steps) => steps.reduce((here, at) => here?.children[at], root);

  function follow() {
    if (source) { source.close(); source = null; }
    const element = document.querySelector("[data-live]");
    if (!element) return;
    const address = new URL(element.dataset.live, location.href);
    if (element.dataset.after) address.searchParams.set("after", element.dataset.after);
    if (element.dataset.word) address.searchParams.set("word", element.dataset.word);
    source = new EventSource(address);
    source.addEventListener("news", (event) => {
      const news = JSON.parse(event.data);
      take(news.html);
      document.dispatchEvent(new CustomEvent("holdfast:news", { detail: { seq: event.lastEventId, ...news } }));
      if (news.words) speak(news.words, news.over);
      if (news.whole || (news.html && inbox())) again();
    });
  }
  // Cards are renewed unless somebody is about to answer one, or reads what came of an answer.
  function inbox() {
    const busy = document.activeElement?.closest("form") || document.querySelector("main .said, main form[aria-busy]");
    return document.querySelector("[data-inbox]") && !busy;
  }
  function again() {
    const list = document.querySelector("[data-list]");
    if (list) window.htmx.ajax("GET", list.dataset.list, { target: "#list", swap: "outerHTML" });
    else if (document.querySelector("table.runs, p[data-live], [data-inbox]")) window.htmx.ajax("GET", location.pathname + location.search, { target: "#main", swap: "innerHTML" });
  }

  // --- clocks: what runs says for how long, each second; no voice is told that ---
  const began = new WeakMap();
  function span(milliseconds) {
    const all = Math.floor(milliseconds / 1000), minutes = Math.floor(all / 60);
    if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return minutes ? `${minutes} min ${all % 60} s` : `${all} s`;
  }
  setInterval(() => {
    for (const one of document.querySelectorAll("[data-ran]")) {
      if (!began.has(one)) began.set(one, performance.now() - Number(one.dataset.ran));
      one.textContent = span(performance.now() - began.get(one));
    }
  }, 1000);

  // --- keys ---
  const rows = () => [...document.querySelectorAll("[data-keys] [data-row]")];
  function go(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((one) => one.closest("tr, li").classList.contains("at"));
    const next = all[Math.max(0, Math.min(all.length - 1, at + step))];
    for (const one of all) one.closest("tr, li").classList.remove("at");
    next.closest("tr, li").classList.add("at");
    next.focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
    if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (event.key === "x") document.querySelector("tr.at input[type=checkbox]")?.click();
    else if (event.key === "/") document.getElementById("q")?.focus();
    else if (event.key === "y" || event.key === "n") decide(event.key);
    else return;
    event.preventDefault();
  });
  function decide(key) {
    const card = document.activeElement?.closest("[data-card]") || document.querySelector("[data-card]");
    card?.querySelector(key === "y" ? "[data-yes]" : "[data-no]")?.focus();
    if (key === "y") card?.querySelector("[data-yes]")?.click();
  }

  // --- ticks and copies ---
  document.addEventListener("change", () => {
    const button = document.querySelector("[data-compare]");
    if (button) button.disabled = document.querySelectorAll("input[name=run]:checked").length !== 2;
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      speak("copied: " + button.dataset.copy, true);
      button.textContent = "copied";
    } catch { button.textContent = "select and copy it"; }
  });

  // --- what changes something is sent as JSON, with the token that goes with the cookie ---
  let token = "";
  async function post(address, body) {
    if (!token) token = (await (await fetch("/door/token")).json()).token;
    return fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Holdfast-Token": token },
      body: JSON.stringify(body),
    });
  }
  function wrong(form) {
    const known = form.querySelector(":scope > .wrong");
    if (known) return known;
    const made = document.createElement("div");
    made.className = "wrong";
    made.tabIndex = -1;
    form.append(made);
    return made;
  }
  // Something changed since a preview was shown: how it is now takes its place.
  function shownAgain(form, html) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const fresh = holder.content.querySelector(".preview");
    form.closest(".preview").replaceWith(fresh);
    window.htmx.process(fresh);
    fresh.querySelector("[autofocus]")?.focus();
    speak(fresh.innerText.slice(0, 300), true);
  }
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-post]");
    if (!form) return;
    event.preventDefault();
    const body = Object.fromEntries(new FormData(form, event.submitter));
    const buttons = form.querySelectorAll("button");
    for (const one of buttons) one.disabled = true;
    form.setAttribute("aria-busy", "true");
    try {
      const answer = await post(form.getAttribute("action"), body);
      const goes = answer.headers.get("HX-Location");
      if (goes) { location.assign(goes); return; }
      if (answer.status === 412) { shownAgain(form, await answer.text()); return; }
      const target = answer.ok ? document.querySelector(form.dataset.post) : wrong(form);
      target.innerHTML = (await answer.text()) || "<p>The page refused that; load it again.</p>";
      window.htmx.process(target);
      (target.querySelector("[autofocus]") || target).focus?.();
      speak(target.innerText.slice(0, 300), true);
    } catch {
      wrong(form).textContent = "The page does not answer: is 'holdfast ui' still there?";
    } finally {
      form.removeAttribute("aria-busy");
      for (const one of buttons) one.disabled = false;
    }
  });

  // --- the selected step: one selection, in the address, in the list and in every link beside it ---
  const selected = () => new URL(location.href).searchParams.get("step") ?? "";
  function mark() {
    const step = selected();
    for (const one of document.querySelectorAll(".steps [data-step]")) {
      if (one.dataset.step === step) one.closest("li").setAttribute("aria-current", "true");
      else one.closest("li").removeAttribute("aria-current");
    }
    for (const one of document.querySelectorAll("[data-tab], .steps .fold, .tab .pages a")) {
      const address = new URL(one.href);
      if (step) address.searchParams.set("step", step);
      else address.searchParams.delete("step");
      one.href = address.pathname + address.search;
    }
    for (const one of document.querySelectorAll(".filter input[name=step]")) one.value = step;
  }
  document.addEventListener("htmx:after:swap", (event) => {
    const target = event.detail?.ctx?.target ?? event.target;
    if (!(target instanceof Element)) return;
    if (target.id === "drawer") {
      mark();
      if (target.dataset.quiet) { delete target.dataset.quiet; return; }
      if (!target.contains(document.activeElement)) target.focus({ preventScroll: true });
      if (matchMedia("(max-width: 50rem)").matches) target.scrollIntoView();
    } else if (target.matches("[id=act], [id=run-act]")) (target.querySelector("[autofocus]") ?? target).focus();
    else if (target.id === "list" || document.getElementById("list")) mark();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-close]");
    if (!link) return;
    event.preventDefault();
    const row = [...document.querySelectorAll(".steps [data-step]")].find((one) => one.dataset.step === selected());
    const address = new URL(location.href);
    for (const name of ["step", "view", "attempt", "from"]) address.searchParams.delete(name);
    history.replaceState(history.state, "", address);
    document.getElementById("drawer").replaceChildren();
    mark();
    row?.focus();
  });
  // What is open of a step is renewed when the step changes, unless somebody acts on it just now.
  document.addEventListener("holdfast:news", (event) => {
    const drawer = document.getElementById("drawer"), head = drawer?.querySelector("[data-drawer]");
    if (!head || drawer.querySelector(".preview, .said") || !event.detail.html.includes(`"${head.dataset.mark}-now"`)) return;
    drawer.dataset.quiet = "yes";
    window.htmx.ajax("GET", head.dataset.drawer, { target: "#drawer", swap: "innerHTML" });
  });

  document.addEventListener("DOMContentLoaded", follow);
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
})();

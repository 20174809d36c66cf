// What the pages do by themselves, beside htmx: theme, keyboard, times, panels, and what is said of a lost connection.
"use strict";
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function nextTheme() {
    const root = document.documentElement;
    const isDark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.dataset.theme = isDark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* kept for this page alone */ }
  }

  // Times are written by the server in its own time zone; here they are shown in that of the browser.
  function localTimes(root) {
    for (const each of all("time[datetime]:not([data-local])", root)) {
      const moment = new Date(each.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      each.dataset.local = "";
      each.title = moment.toLocaleString();
      if (each.dataset.show !== "ago") {
        const today = moment.toDateString() === new Date().toDateString();
        each.textContent = today ? moment.toLocaleTimeString() : moment.toLocaleString([], { dateStyle: "short", timeStyle: "short" });
      }
    }
  }

  // The time that is left to answer a question.
  function countDown() {
    for (const each of all("[data-expires]")) {
      const left = Math.ceil((new Date(each.dataset.expires) - Date.now()) / 1000);
      const words = left <= 0 ? "expired" : left < 120 ? `${left} s left` : left < 7200 ? `${Math.round(left / 60)} min left` : left < 172800 ? `${Math.round(left / 3600)} h left` : `${Math.round(left / 86400)} d left`;
      if (each.textContent !== words) each.textContent = words;
      if (left <= 0) for (const button of all("button[data-answer]", each.closest(".question") || document)) button.disabled = true;
    }
  }

  function setFlow(paths) {
    const flow = new Set(paths);
    for (const step of all(".step")) step.classList.toggle("in-flow", flow.has(step.dataset.path));
    document.dispatchEvent(new CustomEvent("console:flow", { detail: flow }));
  }

  // Where the focus was before a panel was opened.
  let opener = null;
  function closePanel() {
    const panel = find("#panel");
    if (!panel || !panel.firstElementChild) return;
    panel.replaceChildren();
    setFlow([]);
    if (opener && opener.isConnected) opener.focus();
  }

  // The values of a step are loaded when it is opened, and again when the step has gone on since.
  const loaded = new WeakMap();
  const PAUSE = 1500;
  let refreshing = 0;
  function loadOpened() {
    clearTimeout(refreshing);
    for (const each of all("details[data-version][open]")) {
      const { version, at } = loaded.get(each) || { version: null, at: -PAUSE };
      if (version === each.dataset.version) continue;
      // A long loop goes on many times a second.
      const wait = at + PAUSE - performance.now();
      if (wait > 0) { refreshing = setTimeout(loadOpened, wait); continue; }
      loaded.set(each, { version: each.dataset.version, at: performance.now() });
      each.dispatchEvent(new Event("values-wanted"));
    }
  }

  function showOffline(words) {
    const offline = find("#offline");
    if (!offline) return;
    offline.hidden = !words;
    offline.textContent = words;
  }

  const KEYS = { r: "/runs", a: "/approvals", n: "/ask", p: "/patterns", o: "/operations" };
  let waitsForPlace = false;
  function onKey(event) {
    // A tick takes no text: letters are keys there, too.
    const typing = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (event.key === "Escape") { closePanel(); if (typing) event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (waitsForPlace) {
      waitsForPlace = false;
      if (KEYS[event.key]) location.assign(KEYS[event.key]);
      return;
    }
    if (event.key === "g") { waitsForPlace = true; setTimeout(() => { waitsForPlace = false; }, 1500); return; }
    if (event.key === "/") { const search = find("input[type=search]"); if (search) { event.preventDefault(); search.focus(); } return; }
    if (event.key === "?") { find("#keys")?.showModal(); return; }
    if (event.key === "j" || event.key === "k") { moveCard(event.key === "j" ? 1 : -1); return; }
    if (event.key === "y") focusWithin("button.yes");
    if (event.key === "n") focusWithin("button.no");
    if (event.key === "x") focusWithin("input[type=checkbox]");
  }

  // Within the card that has the focus: to its button, or to its next tick. No key answers or ticks by itself.
  function focusWithin(selector) {
    const card = document.activeElement?.closest("[data-card]");
    const found = card ? all(selector, card).filter((each) => !each.disabled) : [];
    if (found.length) found[(found.indexOf(document.activeElement) + 1) % found.length].focus();
  }

  // From card to card, or from run to run.
  function moveCard(by) {
    const cards = all("[data-card]");
    if (!cards.length) return;
    const now = cards.findIndex((card) => card.contains(document.activeElement));
    const next = cards[Math.min(cards.length - 1, Math.max(0, now + by))] || cards[0];
    const link = next.matches("a, button, [tabindex]") ? next : find("a, button, input, [tabindex]", next);
    (link || next).focus();
    next.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("[data-do]");
    if (!target) return;
    switch (target.dataset.do) {
      case "theme": nextTheme(); break;
      case "close-panel": closePanel(); break;
      case "copy": navigator.clipboard?.writeText(target.dataset.text); break;
      case "close-dialog": target.closest("dialog")?.close(); break;
      case "keys": find("#keys")?.showModal(); break;
    }
  });
  document.addEventListener("keydown", onKey);
  // `toggle` does not bubble.
  document.addEventListener("toggle", loadOpened, true);

  // Requests in the order in which they began: one that began before another failed says nothing about that.
  const begun = new WeakMap();
  let requests = 0;
  document.addEventListener("htmx:before:request", (event) => {
    if (event.detail?.ctx) begun.set(event.detail.ctx, ++requests);
    const source = event.detail?.ctx?.sourceElement || event.target;
    if (source?.getAttribute?.("hx-target") === "#panel") opener = source;
  });
  document.addEventListener("htmx:after:swap", () => {
    localTimes(document);
    const panel = find("#panel");
    const flow = panel && find("[data-flow]", panel);
    if (flow && !flow.dataset.seen) {
      flow.dataset.seen = "1";
      setFlow(JSON.parse(flow.dataset.flow));
      find("h2", panel)?.focus();
    }
    loadOpened();
    document.dispatchEvent(new CustomEvent("console:changed"));
  });

  // A live page whose server is gone says so, and is up to date again once it is back.
  document.addEventListener("htmx:sse:error", (event) => {
    if (event.detail?.status === 401) { location.reload(); return; }
    const tooMany = event.detail?.status === 429;
    showOffline(tooMany ? "Too many pages of yours are kept up to date at once: this one is not." : "The server cannot be reached. What is shown may be out of date.");
  });
  document.addEventListener("htmx:sse:after:connection", () => showOffline(""));
  document.addEventListener("htmx:error", () => showOffline("The server cannot be reached. Nothing was changed."));
  // What was wrong is shown until the same part of the page, or what a person does, succeeds.
  let failed = null;
  let failedAt = 0;
  document.addEventListener("htmx:response:error", (event) => { failed = event.detail?.ctx?.sourceElement; failedAt = requests; });
  // What did not come is loaded again with the next change, or when it is opened the next time.
  const forget = (event) => loaded.delete(event.detail?.ctx?.sourceElement);
  document.addEventListener("htmx:response:error", forget);
  document.addEventListener("htmx:error", forget);
  document.addEventListener("htmx:after:request", (event) => {
    showOffline("");
    const ctx = event.detail?.ctx;
    const isLater = ctx?.sourceEvent?.isTrusted && begun.get(ctx) > failedAt;
    if (ctx?.response?.status < 400 && (ctx.sourceElement === failed || isLater)) find("#problem")?.replaceChildren();
  });
  // The server ended the stream because the session or its token has ended.
  document.addEventListener("signed-out", () => location.reload());

  // The token of a link stands behind `#`, which browsers send nowhere. It is put into the form and taken from the bar.
  // Nobody is signed in by a link alone: a stranger's link must not sign anybody in as somebody else.
  function takeToken() {
    const field = find("#token");
    if (!field || location.hash.length < 2) return;
    field.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname + location.search);
    find("#sign-in")?.focus();
  }

  localTimes(document);
  countDown();
  setInterval(countDown, 1000);
  takeToken();
})();

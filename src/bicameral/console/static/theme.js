// Before the first paint: the theme that was chosen here. Without a choice it is that of the system.
"use strict";
(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* a browser that keeps nothing */ }
})();

// Keys for judging: digits rate, n next, p previous, u undo, ? help. They press the buttons and links that are
// there anyhow, and do nothing while somebody types.
"use strict";

(() => {
  const STORED = "trecexam-keys-off";
  const find = (id) => document.getElementById(id);
  let pressed = false;

  const isOff = () => { try { return localStorage.getItem(STORED) === "1"; } catch { return false; } };

  function show() {
    const button = find("judge-keys");
    if (!button) return;
    button.hidden = false;
    button.setAttribute("aria-pressed", String(!isOff()));
    button.textContent = isOff() ? "Shortcuts are off" : "Shortcuts are on";
  }

  function isTyping(target) {
    return target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== "radio");
  }

  document.addEventListener("keydown", (event) => {
    if (!(find("judge") || find("judge-undo")) || event.ctrlKey || event.altKey || event.metaKey || event.repeat || isTyping(event.target)) return;
    if (event.key === "?") {
      const help = find("judge-help");
      if (!help) return;
      help.open = !help.open;
      if (help.open) help.scrollIntoView({ block: "nearest" });
      event.preventDefault();
      return;
    }
    if (isOff()) return;
    const button = /^[0-9]$/.test(event.key)
      ? document.querySelector(`#rate-form .keys button[aria-keyshortcuts="${event.key}"]`)
      : find({ n: "judge-next", p: "judge-previous", u: "judge-undo" }[event.key] || "");
    if (!button || pressed) return;
    event.preventDefault();
    // One key, one step: until the next page is there.
    if (!button.form || button.form.reportValidity()) {
      pressed = true;
      button.click();
    }
  });

  document.addEventListener("click", (event) => {
    if (event.target.id !== "judge-keys") return;
    try { localStorage.setItem(STORED, isOff() ? "0" : "1"); } catch { /* then it is for this page alone */ }
    show();
  });

  // A page that comes back from the browser's memory takes keys again.
  window.addEventListener("pageshow", () => { pressed = false; });
  document.addEventListener("trecexam:swapped", show);
  show();
})();

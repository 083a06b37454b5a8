// Judging many items of one passage by keys: digits rate the item that is marked, arrows move the mark, Enter
// saves. Also counts the seconds for which the page is in sight. Without this script the form is the same.
"use strict";

(() => {
  const form = document.getElementById("rate-form");
  if (!form) return;

  let seconds = 0;
  let since = document.hidden ? 0 : performance.now();
  document.addEventListener("visibilitychange", () => {
    if (since) seconds += (performance.now() - since) / 1000;
    since = document.hidden ? 0 : performance.now();
  });
  document.addEventListener("submit", (event) => {
    const field = event.target.querySelector('[name="active"]');
    if (field) field.value = (seconds + (since ? (performance.now() - since) / 1000 : 0)).toFixed(1);
  });

  const questions = [...form.querySelectorAll("[data-question]")];
  if (!questions.length) return;
  const save = document.getElementById("assess-save");
  const isOff = () => { try { return localStorage.getItem("trecexam-keys-off") === "1"; } catch { return false; } };
  let at = Math.max(0, questions.findIndex((one) => !one.querySelector(":checked")));

  function mark(place) {
    at = Math.min(Math.max(place, 0), questions.length - 1);
    questions.forEach((one, number) => one.classList.toggle("focus", number === at));
    questions[at].scrollIntoView({ block: "nearest" });
  }

  form.addEventListener("focusin", (event) => {
    const place = questions.findIndex((one) => one.contains(event.target));
    if (place >= 0 && place !== at) mark(place);
  });

  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || isOff()) return;
    const isRadio = target.type === "radio";
    if (target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !isRadio)) return;
    if (key === "ArrowDown" || key === "ArrowUp") {
      // On a radio button the arrows are the browser's own.
      if (isRadio || target.id === "passage-text") return;
      mark(at + (key === "ArrowDown" ? 1 : -1));
    } else if (key === "Enter" && !event.repeat && (isRadio || !target.closest("a, button, summary"))) {
      save.click();
    } else if (/^[0-9]$/.test(key)) {
      const field = questions[at].querySelector(`[data-key="${key}"]`);
      if (!field) return;
      field.checked = true;
      if (isRadio) target.blur();
      if (at + 1 < questions.length) mark(at + 1);
      else save.focus();
    } else return;
    event.preventDefault();
  });

  mark(at);
})();

// Keeps the page current: asks for the state's version, fetches this page again when there is a new one, and
// swaps its main part. Scrolling, focus and what is typed stay. Without this script the pages are the same.
"use strict";

(() => {
  const EVERY = 2000;
  const find = (id) => document.getElementById(id);
  let shown = Number(document.body.dataset.version);
  let known = "";
  let fetching = false;
  let lost = false;

  // Whether a reader typed or selected something that a new main part would take away.
  function isInUse(main) {
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed && main.contains(selection.anchorNode)) return true;
    for (const field of main.querySelectorAll("input, textarea, select")) {
      if (field.type === "checkbox" || field.type === "radio") {
        if (field.checked !== field.defaultChecked) return true;
      } else if (field.tagName === "SELECT") {
        const chosen = [...field.options];
        const given = chosen.some((one) => one.defaultSelected);
        if (given ? chosen.some((one) => one.selected !== one.defaultSelected) : field.selectedIndex > 0) return true;
      } else if (field.type !== "hidden" && field.value !== field.defaultValue) return true;
    }
    return false;
  }

  // What finds an element again in the new main part: its id, else its place among those like it.
  function placeOf(element, main) {
    if (!element || !main.contains(element)) return null;
    if (element.id) return { id: element.id };
    const kind = element.tagName;
    const target = element.getAttribute("href") || element.getAttribute("name") || "";
    const alike = [...main.querySelectorAll(kind)].filter(
      (one) => (one.getAttribute("href") || one.getAttribute("name") || "") === target);
    return { kind, target, at: alike.indexOf(element) };
  }

  function elementAt(place, main) {
    if (!place) return null;
    if (place.id) return find(place.id);
    const alike = [...main.querySelectorAll(place.kind)].filter(
      (one) => (one.getAttribute("href") || one.getAttribute("name") || "") === place.target);
    return alike[place.at] || null;
  }

  function swap(fresh) {
    const old = find("main");
    const main = fresh.getElementById("main");
    if (!main) return;
    const active = document.activeElement;
    const place = placeOf(active, old);
    const range = place && "selectionStart" in active ? [active.selectionStart, active.selectionEnd] : null;
    const scrolled = [...old.querySelectorAll("[id]")]
      .filter((one) => one.scrollLeft || one.scrollTop)
      .map((one) => [one.id, one.scrollLeft, one.scrollTop]);
    const open = [...old.querySelectorAll("details[open][id]")].map((one) => one.id);
    const [x, y] = [window.scrollX, window.scrollY];
    old.replaceWith(document.adoptNode(main));
    for (const [id, left, top] of scrolled) {
      const one = find(id);
      if (one) one.scrollTo(left, top);
    }
    for (const id of open) find(id)?.setAttribute("open", "");
    const again = elementAt(place, main);
    if (again) {
      again.focus({ preventScroll: true });
      if (range && range[0] !== null) {
        try { again.setSelectionRange(...range); } catch { /* not all fields have one */ }
      }
    }
    window.scrollTo(x, y);
    document.title = fresh.title;
    document.body.dataset.version = fresh.body.dataset.version;
    shown = Number(fresh.body.dataset.version);
    find("notice").hidden = true;
    find("told").textContent = "The page shows the new state of the track.";
    document.dispatchEvent(new CustomEvent("trecexam:swapped"));
  }

  async function refresh(force) {
    if (fetching) return;
    fetching = true;
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { "X-Refresh": "1" } });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const status = fresh.getElementById("status");
      if (status && status.innerHTML !== find("status").innerHTML) {
        find("status").innerHTML = status.innerHTML;
      }
      const header = fresh.querySelector("header nav");
      if (header && !document.querySelector("header").contains(document.activeElement)) {
        document.querySelector("header nav").innerHTML = header.innerHTML;
      }
      if (Number(fresh.body.dataset.version) === shown && !force) return;
      if (!force && isInUse(find("main"))) find("notice").hidden = false;
      else swap(fresh);
    } finally {
      fetching = false;
    }
  }

  async function ask() {
    if (document.hidden) return;
    let state;
    try {
      const answer = await fetch(document.body.dataset.state, { headers: { "X-Refresh": "1" } });
      if (answer.status === 401) {
        // What is typed stays: after a login in another tab it can be sent.
        lost = true;
        find("status").innerHTML =
          '<p class="note bad"><strong>You are logged out.</strong> Log in in another tab, and go on here.</p>';
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      state = await answer.json();
    } catch {
      if (!lost) {
        lost = true;
        find("status").innerHTML =
          '<p class="note bad"><strong>trecexam serve does not answer.</strong> What is shown is what was read last.</p>';
      }
      return;
    }
    const now = JSON.stringify([state.version, state.trouble, state.graded, state.cells, state.watched_by]);
    if (lost || (known && now !== known) || state.version !== shown) {
      lost = false;
      known = now;
      try { await refresh(false); } catch { known = ""; }
    }
    known = known || now;
    // After a new start of the server, forms of this page are still its own.
    for (const field of document.querySelectorAll('input[name="csrf"]')) {
      if (field.value !== state.csrf) field.value = field.defaultValue = state.csrf;
    }
  }

  document.addEventListener("click", (event) => {
    if (event.target.id === "show-new") refresh(true);
  });
  document.addEventListener("visibilitychange", ask);
  // On a phone the header is one row: show the link to this page.
  document.querySelector("header nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  setInterval(ask, EVERY);
  ask();
})();

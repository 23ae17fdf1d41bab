"use strict";
(() => {
  const one = (id) => document.getElementById(id);
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const rows = all("#steps tr[id]");
  const numbers = rows.map((row) => +row.id.slice(1));
  const newest = +one("t-at").max;
  all(".js").forEach((part) => { part.hidden = false; });
  if (!newest) one("travel").hidden = true;

  // Everything around an element is opened, so that it can be seen.
  const reveal = (element) => {
    for (let around = element.parentElement; around; around = around.parentElement)
      if (around.tagName === "DETAILS") around.open = true;
  };
  const rowOf = (number) => {
    let low = 0, high = numbers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[middle] <= number) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  // ---- links to steps
  const toHash = () => {
    const wanted = /^#n(\d+)$/.exec(location.hash);
    if (!wanted) return;
    const at = rowOf(+wanted[1]);
    const target = one("n" + wanted[1]) || rows[at];
    if (!target) return;
    if (rows[at] && rows[at].hidden) clear();
    reveal(target);
    if (rows[at]) { mark(at, false); }
    target.scrollIntoView({ block: "center" });
  };

  // ---- the step that one is at
  let here = -1;
  const mark = (at, scroll = true) => {
    if (rows[here]) { rows[here].classList.remove("here"); rows[here].removeAttribute("aria-current"); }
    here = at;
    const row = rows[here];
    if (!row) return;
    row.classList.add("here");
    row.setAttribute("aria-current", "step");
    if (!scroll) return;
    reveal(row);
    row.scrollIntoView({ block: "nearest" });
    (row.querySelector("summary") || row.querySelector("a")).focus({ preventScroll: true });
  };
  const walk = (by) => {
    for (let at = here + by; at >= 0 && at < rows.length; at += by)
      if (!rows[at].hidden) { mark(at); return; }
  };

  // ---- filter
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const kind = one("f-kind"), lane = one("f-lane"), text = one("f-text"), odd = one("f-odd");
  const groups = all("#steps .group");
  const filter = () => {
    const words = text.value.trim().toLowerCase();
    const asked = kind.value || lane.value || words || odd.checked;
    let shown = 0;
    for (const row of rows) {
      const fits = (!kind.value || row.dataset.k === kind.value) && (!lane.value || row.dataset.l === lane.value)
        && (!odd.checked || row.className.includes("f-") || row.lastElementChild.textContent !== "")
        && (!words || textOf(row).includes(words));
      row.hidden = !fits;
      shown += fits;
    }
    groups.forEach((group, place) => {
      const some = all("tr[id]", group).some((row) => !row.hidden);
      group.hidden = !some;
      if (group.tagName === "DETAILS") group.open = asked ? some && shown <= 2000 : place === 0;
    });
    one("f-count").textContent = asked ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  };
  const clear = () => { kind.value = lane.value = text.value = ""; odd.checked = false; filter(); };
  let soon = 0;
  text.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(filter, 150); });
  [kind, lane, odd].forEach((field) => field.addEventListener("change", filter));
  text.form.addEventListener("submit", (event) => { event.preventDefault(); filter(); });

  // ---- open all of the conversation
  const opener = one("open-all");
  const openAll = () => {
    const open = opener.getAttribute("aria-pressed") !== "true";
    opener.setAttribute("aria-pressed", String(open));
    opener.textContent = open ? "Close all" : "Open all";
    all("#conversation details:not(.more)").forEach((part) => { part.open = open; });
  };
  opener.addEventListener("click", openAll);

  // ---- back in time: everything says from which action on it was there, and until which
  const slider = one("t-at"), says = one("t-says"), toNow = one("t-now");
  const things = all("#conversation [data-s]").map((thing) => ({
    thing, since: +thing.dataset.s, until: thing.dataset.u ? +thing.dataset.u : Infinity, hidden: thing.hidden,
  }));
  const moments = things.flatMap((it) => it.until < Infinity ? [[it.since, it], [it.until, it]] : [[it.since, it]])
    .sort((one, other) => one[0] - other[0]);
  const gone = all("#conversation [data-gone]");
  let time = null, lit = [], wasOpen = [];
  const set = (it, at) => { it.thing.hidden = !(it.since <= at && at < it.until); };
  const between = (low, high) => {
    let first = 0, last = moments.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (moments[middle][0] <= low) first = middle + 1; else last = middle;
    }
    const found = [];
    for (; first < moments.length && moments[first][0] <= high; first++) found.push(moments[first][1]);
    return found;
  };
  const go = (at) => {
    at = Math.max(0, Math.min(newest, at));
    if (time === null) {
      document.body.classList.add("going");
      wasOpen = gone.map((part) => part.open);
      gone.forEach((part) => { part.open = true; });
      things.forEach((it) => set(it, at));
    } else {
      between(Math.min(time, at), Math.max(time, at)).forEach((it) => set(it, at));
    }
    time = at;
    lit.forEach((part) => part.classList.remove("new"));
    lit = between(at - 1, at).map((it) => it.thing).filter((part) => !part.hidden && !part.classList.contains("gone"));
    lit.forEach((part) => { part.classList.add("new"); reveal(part); });
    if (lit[0]) lit[0].scrollIntoView({ block: "nearest", behavior: "auto" });
    slider.value = at;
    const row = rows[rowOf(at)];
    says.textContent = row ? `#${at} ${row.dataset.k} · ${row.cells[4].textContent} · ${(row.querySelector("summary") || row.cells[3]).textContent.trim()}` : "before everything";
    toNow.disabled = false;
    mark(rowOf(at), false);
  };
  const now = () => {
    if (time === null) return;
    time = null;
    document.body.classList.remove("going");
    things.forEach((it) => { it.thing.hidden = it.hidden; });
    gone.forEach((part, place) => { part.open = wasOpen[place]; });
    lit.forEach((part) => part.classList.remove("new"));
    slider.value = newest;
    says.textContent = "now";
    toNow.disabled = true;
  };
  const by = (step) => go((time === null ? newest : time) + step);
  slider.addEventListener("input", () => go(+slider.value));
  one("t-back").addEventListener("click", () => by(-1));
  one("t-on").addEventListener("click", () => by(1));
  toNow.addEventListener("click", now);

  // ---- keys
  const keys = {
    j: () => walk(1), k: () => walk(-1), e: openAll, "[": () => by(-1), "]": () => by(1), Escape: now,
    "/": () => { text.scrollIntoView({ block: "center" }); text.focus(); },
    t: () => { if (here >= 0) go(numbers[here]); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea") && event.key !== "Escape") return;
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (act) { event.preventDefault(); act(); }
  });
  addEventListener("hashchange", toHash);
  toHash();
})();

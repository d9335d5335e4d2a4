"use strict";
(() => {
  const table = document.getElementById("all");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const words = document.getElementById("words");
  const verdict = document.getElementById("verdict");
  const found = document.getElementById("found");
  const none = document.getElementById("none");
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

  function isShown(row) {
    const kind = verdict.value;
    const fits = kind === "" || (kind === "unmet" ? row.dataset.met === "0" : row.dataset.kind === kind);
    const sought = words.value.toLowerCase().split(/\s+/);
    return fits && sought.every((one) => texts.get(row).includes(one));
  }

  function filter() {
    let shown = 0;
    for (const row of rows) {
      const is = isShown(row);
      row.hidden = !is;
      document.getElementById(row.dataset.audit).hidden = !is;
      shown += is ? 1 : 0;
    }
    found.textContent = `${shown} of ${rows.length} shown`;
    none.hidden = shown > 0 || rows.length === 0;
  }

  const byName = new Intl.Collator(undefined, { numeric: true });
  const places = { name: 1, claim: 2 };

  function compared(one, other, key) {
    if (key in places) {
      return byName.compare(one.cells[places[key]].textContent, other.cells[places[key]].textContent);
    }
    // Numbers of one parameter compare, those of two do not.
    const byKind = key === "lower" ? byName.compare(one.dataset.symbol, other.dataset.symbol) : 0;
    if (byKind !== 0) {
      return byKind;
    }
    const [first, second] = [one, other].map((row) => {
      const value = row.dataset[key];
      return value === "inf" ? Infinity : Number(value);
    });
    return first < second ? -1 : first > second ? 1 : 0;
  }

  function sort(head) {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) {
      other.removeAttribute("aria-sort");
    }
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const order = descending ? -1 : 1;
    body.append(...[...rows].sort((one, other) => order * compared(one, other, head.dataset.key)));
  }

  for (const head of table.tHead.rows[0].cells) {
    const button = head.querySelector("button");
    button.disabled = false;
    button.addEventListener("click", () => sort(head));
  }
  words.addEventListener("input", filter);
  verdict.addEventListener("change", filter);
  document.querySelector(".filter").hidden = false;
  filter();

  // A link leads to an audit that is open.
  function follow() {
    const article = document.getElementById(location.hash.slice(1));
    if (article !== null && article.tagName === "ARTICLE") {
      article.hidden = false;
      article.firstElementChild.open = true;
      article.scrollIntoView();
      article.querySelector("summary").focus({ preventScroll: true });
    }
  }
  window.addEventListener("hashchange", follow);
  follow();
  table.addEventListener("click", (event) => {
    if (event.target.closest("a") !== null) {
      setTimeout(follow);
    }
  });
  if (rows.length === 1) {
    document.querySelector("article > details").open = true;
  }

  // On paper nothing can be opened.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("article > details:not([open])")];
    closed.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => {
    closed.forEach((one) => { one.open = false; });
  });
})();

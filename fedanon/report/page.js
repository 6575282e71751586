"use strict";
(function () {
  // light or dark by hand; what the system says otherwise
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const key = "fedanon-theme";
  const wanted = () => {
    try { return localStorage.getItem(key); } catch (error) { return null; }
  };
  const asked = wanted();
  if (asked === "light" || asked === "dark") root.dataset.theme = asked;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const tell = () => button.setAttribute("aria-pressed", String(isDark()));
  button.hidden = false;
  tell();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem(key, root.dataset.theme); } catch (error) { /* a page from a file may not keep it */ }
    tell();
  });

  // a click on a column's title sorts by it
  const valueOf = (cell) => cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : typeof a === typeof b ? a.localeCompare(b, undefined, { numeric: true }) : typeof a === "number" ? -1 : 1;
  for (const table of document.querySelectorAll("table[data-sort]")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    if (body.rows.length < 2) continue;
    heads.forEach((head, column) => {
      const sorter = document.createElement("button");
      sorter.type = "button";
      sorter.title = table.dataset.sort.replace("{column}", head.textContent);
      sorter.append(...head.childNodes);
      head.append(sorter);
      sorter.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => compare(valueOf(a.cells[column]), valueOf(b.cells[column])));
        body.append(...(down ? rows.reverse() : rows));
      });
    });
  }

  // on a phone the contents would push the text away; on paper everything is open
  if (innerWidth < 1120) document.querySelector("nav details")?.removeAttribute("open");
  addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach((one) => { one.open = true; }));
})();

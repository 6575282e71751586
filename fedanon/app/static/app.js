"use strict";
(function () {
  // htmx notes the address for a history that we do not use; nothing is kept in the browser
  sessionStorage.removeItem("htmx-current-path-for-history");

  // a choice of language or theme needs no button
  for (const one of document.querySelectorAll("[data-hide]")) one.hidden = true;
  for (const one of document.querySelectorAll("[data-submit]")) one.addEventListener("change", () => one.form.requestSubmit());

  // the number beside a slider
  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (slider.type !== "range") return;
    const output = slider.form.querySelector(`output[for="${slider.id}"]`);
    if (output) output.textContent = slider.dataset.scale ? String(slider.value / slider.dataset.scale) : slider.value;
  });

  // a file can be dropped anywhere on its field
  for (const zone of document.querySelectorAll(".drop")) {
    const input = zone.querySelector("input");
    const over = (yes) => (event) => { event.preventDefault(); zone.classList.toggle("over", yes); };
    zone.addEventListener("dragover", over(true));
    zone.addEventListener("dragleave", over(false));
    zone.addEventListener("drop", (event) => {
      over(false)(event);
      if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; input.form.requestSubmit(); }
    });
  }

  // a line of a taxonomy dropped onto a group belongs to it; the field beside it says the same
  let moved = null;
  for (const node of document.querySelectorAll(".tree .node")) {
    node.addEventListener("dragstart", (event) => { moved = node; event.dataTransfer.setData("text/plain", ""); });
    node.addEventListener("dragover", (event) => { if (node.dataset.group !== undefined && node !== moved) { event.preventDefault(); node.classList.add("over"); } });
    node.addEventListener("dragleave", () => node.classList.remove("over"));
    node.addEventListener("drop", (event) => {
      event.preventDefault();
      node.classList.remove("over");
      const field = moved && moved.querySelector("select");
      if (field) { field.value = node.dataset.group; field.form.requestSubmit(); }
    });
  }

  // on paper everything is open
  addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach((one) => { one.open = true; }));
})();

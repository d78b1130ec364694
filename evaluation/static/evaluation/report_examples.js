// The list of examples on a report page: filters and page links load the list alone, and keys walk through it.
// Without this script the same form and links load the whole page.
(function () {
  "use strict";

  const TYPING = ["INPUT", "TEXTAREA", "SELECT"];

  function start(section) {
    const form = section.querySelector("form.filters");
    const list = section.querySelector("[data-examples]");
    let newest = 0;

    async function load(query, focusFirst) {
      const turn = ++newest;
      list.setAttribute("aria-busy", "true");
      try {
        const response = await fetch(section.dataset.examplesUrl + "?" + query);
        if (!response.ok) { throw new Error(String(response.status)); }
        const text = await response.text();
        if (turn !== newest) { return; }
        // The server escapes every text in it; see registry.visible_text.
        list.innerHTML = text;
        window.history.replaceState(null, "", "?" + query + "#examples");
        if (focusFirst) { move(1); }
      } catch (error) {
        window.location.search = query;
      } finally {
        list.removeAttribute("aria-busy");
      }
    }

    function query() {
      const values = new URLSearchParams();
      new FormData(form).forEach(function (value, name) {
        if (value) { values.append(name, value); }
      });
      return values.toString();
    }

    function move(step) {
      const examples = Array.from(list.querySelectorAll(".example"));
      const current = examples.indexOf(document.activeElement && document.activeElement.closest(".example"));
      const next = examples[current < 0 ? (step > 0 ? 0 : examples.length - 1) : current + step];
      if (next) {
        next.focus({ preventScroll: true });
        next.scrollIntoView({ block: "start" });
      }
    }

    function follow(selector) {
      const link = list.querySelector(selector);
      if (link) { load(link.getAttribute("href").split("?")[1].split("#")[0], true); }
    }

    form.addEventListener("submit", function (event) {
      event.preventDefault();
      load(query(), false);
    });
    form.addEventListener("change", function (event) {
      if (event.target.name !== "q") { load(query(), false); }
    });
    list.addEventListener("click", function (event) {
      const link = event.target.closest("a[data-page]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) { return; }
      event.preventDefault();
      load(link.getAttribute("href").split("?")[1].split("#")[0], true);
    });
    document.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey || TYPING.includes(event.target.tagName)) { return; }
      if (event.key === "j") { move(1); }
      else if (event.key === "k") { move(-1); }
      else if (event.key === "n") { follow("a[data-page=next]"); }
      else if (event.key === "p") { follow("a[data-page=previous]"); }
      else if (event.key === "/") {
        event.preventDefault();
        form.querySelector("input[type=search]").focus();
      }
    });
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-examples-url]").forEach(start);
  });
})();

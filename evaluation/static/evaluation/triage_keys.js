// Keys of a sample of a triage. Every key presses a button or follows a link that is on the page; without this script the
// same buttons and links do the same.
(function () {
  "use strict";

  const TYPING = ["INPUT", "TEXTAREA", "SELECT"];
  const KEYS = ["f", "s", "u", "c", "m", "r", "j", "k", "z"];

  function start(root) {
    document.addEventListener("keydown", function (event) {
      const isTyping = TYPING.includes(event.target.tagName);
      if (isTyping && event.key === "Escape") { event.target.blur(); }
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) { return; }
      if (!KEYS.includes(event.key) || !root.hasAttribute("data-listening")) { return; }
      const target = root.querySelector('[data-key="' + event.key + '"]');
      if (!target) { return; }
      // A key that is held down must not send the same word twice.
      root.removeAttribute("data-listening");
      event.preventDefault();
      target.click();
    });
    root.setAttribute("data-listening", "");
    // Back from the browser's memory of pages: the keys work again.
    window.addEventListener("pageshow", function () { root.setAttribute("data-listening", ""); });
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-triage]").forEach(start);
  });
})();

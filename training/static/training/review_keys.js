// Keys of the review screen. Every key presses a button or follows a link that is on the page; without this script the
// same buttons and links do the same.
(function () {
  "use strict";

  const TYPING = ["INPUT", "TEXTAREA", "SELECT"];

  function start(root) {
    const fix = root.querySelector("[data-fix]");
    const form = root.querySelector("[data-fix-form]");

    function openFix() {
      if (!fix) { return; }
      fix.open = true;
      const text = form.querySelector("textarea");
      text.focus();
      text.scrollIntoView({ block: "nearest" });
    }

    function press(key) {
      if (key === "f") { openFix(); return true; }
      const target = root.querySelector('[data-key="' + key + '"]');
      if (!target) { return false; }
      // A key that is held down must not send the same verdict twice.
      root.removeAttribute("data-listening");
      target.click();
      return true;
    }

    document.addEventListener("keydown", function (event) {
      const isTyping = TYPING.includes(event.target.tagName);
      if (isTyping && event.key === "Enter" && (event.ctrlKey || event.metaKey) && form && form.contains(event.target)) {
        event.preventDefault();
        form.querySelector("button[value=fix]").click();
      } else if (isTyping && event.key === "Escape") {
        event.target.blur();
      } else if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat) {
        if (["g", "b", "f", "j", "k", "u"].includes(event.key) && root.hasAttribute("data-listening") && press(event.key)) {
          event.preventDefault();
        }
      }
    });

    root.setAttribute("data-listening", "");
    // Back from the browser's memory of pages: the keys work again.
    window.addEventListener("pageshow", function () { root.setAttribute("data-listening", ""); });
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-review]").forEach(start);
  });
})();

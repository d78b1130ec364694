// While a run is under way its curves and findings are fetched again every ten seconds, as the server draws them.
(function () {
  "use strict";

  const POLL_MILLISECONDS = 10000;
  const SLOW_POLL_MILLISECONDS = 30000;

  function follow(root) {
    async function refresh() {
      let wait = POLL_MILLISECONDS;
      try {
        const response = await fetch(root.dataset.runLive, { headers: { Accept: "text/html" } });
        // A page of another address is the sign-in, after the session has ended.
        if (!response.ok || response.redirected) { throw new Error(String(response.status)); }
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        root.replaceChildren(...page.body.children);
      } catch (error) {
        wait = SLOW_POLL_MILLISECONDS;
      }
      window.setTimeout(refresh, document.hidden ? SLOW_POLL_MILLISECONDS : wait);
    }

    window.setTimeout(refresh, POLL_MILLISECONDS);
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-run-live]").forEach(function (root) {
      if (root.dataset.runLive) { follow(root); }
    });
  });
})();

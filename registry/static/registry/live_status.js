// Keeps a report page in step with a job that is still running: asks the server for its status every two seconds, moves
// the progress bar, and loads the page again once something other than the progress has changed.
(function () {
  "use strict";

  const POLL_MILLISECONDS = 2000;
  const SLOW_POLL_MILLISECONDS = 10000;

  function show(root, job) {
    const bar = root.querySelector("[data-live-bar]");
    const percent = root.querySelector("[data-live-percent]");
    const message = root.querySelector("[data-live-message]");
    const fraction = Math.min(Math.max(job.fraction || 0, 0), 1);
    if (bar) { bar.value = fraction; }
    if (percent) { percent.textContent = Math.round(100 * fraction) + " %"; }
    // textContent, never innerHTML: the message may quote what a model wrote.
    if (message) { message.textContent = job.message || ""; }
  }

  function follow(root) {
    const seen = { state: root.dataset.liveState, kind: root.dataset.liveKind, job: root.dataset.liveJobState };

    async function look() {
      let wait = POLL_MILLISECONDS;
      try {
        const response = await fetch(root.dataset.liveUrl, { headers: { Accept: "application/json" } });
        if (!response.ok) { throw new Error(String(response.status)); }
        const status = await response.json();
        const job = status.job || {};
        const hasChanged = status.is_final || status.state !== seen.state || (job.kind || "") !== seen.kind;
        if (hasChanged || (job.state || "") !== seen.job) {
          window.location.reload();
          return;
        }
        show(root, job);
      } catch (error) {
        // The server may be restarting; it is asked again, less often.
        wait = SLOW_POLL_MILLISECONDS;
      }
      window.setTimeout(look, document.hidden ? SLOW_POLL_MILLISECONDS : wait);
    }

    window.setTimeout(look, POLL_MILLISECONDS);
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-live-url]").forEach(follow);
  });
})();

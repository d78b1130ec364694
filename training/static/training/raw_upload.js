// Sends raw files that are too large for one request: they are hashed here and go in pieces through the API, as the
// command line sends them. Smaller files, and browsers without this script, use the plain form.
(function () {
  "use strict";

  const HASH_BYTES = 4 * 1024 * 1024;

  // SHA-256 (FIPS 180-4) over pieces; the browser's own digest would need the whole file in memory, and https.
  const K = (function () {
    const constants = new Uint32Array(64);
    let count = 0;
    for (let candidate = 2; count < 64; candidate += 1) {
      let isPrime = true;
      for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) {
        if (candidate % divisor === 0) { isPrime = false; break; }
      }
      if (isPrime) {
        const root = Math.cbrt(candidate);
        constants[count] = Math.floor((root - Math.floor(root)) * 4294967296);
        count += 1;
      }
    }
    return constants;
  })();

  function Sha256() {
    this.state = new Uint32Array([
      0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    ]);
    this.words = new Uint32Array(64);
    this.rest = new Uint8Array(64);
    this.numRest = 0;
    this.numBytes = 0;
  }

  Sha256.prototype.block = function (bytes, at) {
    const w = this.words, s = this.state;
    for (let i = 0; i < 16; i += 1) {
      const j = at + 4 * i;
      w[i] = (bytes[j] << 24) | (bytes[j + 1] << 16) | (bytes[j + 2] << 8) | bytes[j + 3];
    }
    for (let i = 16; i < 64; i += 1) {
      const x = w[i - 15], y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (let i = 0; i < 64; i += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    s[0] += a; s[1] += b; s[2] += c; s[3] += d; s[4] += e; s[5] += f; s[6] += g; s[7] += h;
  };

  Sha256.prototype.update = function (bytes) {
    this.numBytes += bytes.length;
    let at = 0;
    while (at < bytes.length) {
      if (this.numRest === 0 && bytes.length - at >= 64) {
        this.block(bytes, at);
        at += 64;
        continue;
      }
      const part = bytes.subarray(at, at + 64 - this.numRest);
      this.rest.set(part, this.numRest);
      this.numRest += part.length;
      at += part.length;
      if (this.numRest === 64) { this.block(this.rest, 0); this.numRest = 0; }
    }
  };

  Sha256.prototype.hex = function () {
    const numBytes = this.numBytes;
    const padding = new Uint8Array((this.numRest < 56 ? 64 : 128) - this.numRest);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor(numBytes / 536870912));
    view.setUint32(padding.length - 4, (numBytes * 8) >>> 0);
    this.update(padding);
    return Array.from(this.state, function (word) { return word.toString(16).padStart(8, "0"); }).join("");
  };

  async function hashOf(file, report) {
    const hash = new Sha256();
    for (let at = 0; at < file.size; at += HASH_BYTES) {
      const part = await file.slice(at, at + HASH_BYTES).arrayBuffer();
      hash.update(new Uint8Array(part));
      report(part.byteLength);
    }
    return hash.hex();
  }

  function start(form) {
    const limit = Number(form.dataset.limitBytes);
    const status = form.querySelector("[data-upload-status]");
    const bar = form.querySelector("progress");
    const button = form.querySelector("button[type=submit]");

    async function ask(method, url, body, headers) {
      const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
      const response = await fetch(url, { method: method, body: body, headers: Object.assign({ "X-CSRFToken": token }, headers) });
      const answer = await response.json();
      if (!response.ok) {
        const faults = (answer.errors || []).map(function (fault) { return fault.message; });
        throw new Error(faults.length ? faults.join(" ") : answer.detail || String(response.status));
      }
      return answer;
    }

    function askJson(url, value) {
      return ask("POST", url, JSON.stringify(value), { "Content-Type": "application/json" });
    }

    async function send(files) {
      const total = files.reduce(function (sum, file) { return sum + file.size; }, 0);
      let done = 0;
      function report(word) {
        return function (numBytes) {
          done += numBytes;
          // Hashing and sending each take half of the bar.
          bar.value = done / (2 * total);
          status.textContent = word + " " + Math.round(100 * bar.value) + " %";
        };
      }
      const declared = [];
      const bySha = {};
      for (const file of files) {
        const sha256 = await hashOf(file, report("Reading:"));
        declared.push({ path: file.name, size_bytes: file.size, sha256: sha256 });
        bySha[sha256] = file;
      }
      const base = form.dataset.apiUrl;
      const upload = await askJson(base + "uploads", { kind: "raw_data", files: declared });
      for (const known of upload.files) {
        const file = bySha[known.sha256];
        let at = known.received_bytes;
        report("Sending:")(at);
        while (at < file.size) {
          const end = Math.min(at + upload.chunk_size_bytes, file.size);
          const range = "bytes " + at + "-" + (end - 1) + "/" + file.size;
          await ask("PUT", base + "uploads/" + upload.id + "/blobs/" + known.sha256, file.slice(at, end), {
            "Content-Range": range, "Content-Type": "application/octet-stream",
          });
          report("Sending:")(end - at);
          at = end;
        }
      }
      const committed = await ask("POST", base + "uploads/" + upload.id + "/commit");
      const row = await askJson(base + "raw-data", { name: form.elements.name.value, artifact: committed.artifact });
      window.location.assign(form.dataset.pageUrl.replace("00000000-0000-0000-0000-000000000000", row.id));
    }

    form.addEventListener("submit", function (event) {
      const files = Array.from(form.elements.raw_files.files);
      const total = files.reduce(function (sum, file) { return sum + file.size; }, 0);
      if (total <= limit) { return; }
      event.preventDefault();
      button.disabled = true;
      bar.hidden = false;
      send(files).catch(function (error) {
        // textContent, never innerHTML: the message may quote a file's name.
        status.textContent = "The files were not stored: " + error.message;
        button.disabled = false;
        bar.hidden = true;
      });
    });
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("form[data-raw-upload]").forEach(start);
  });
})();

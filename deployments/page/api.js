/** An answer other than success, as the service describes it. */
class ApiError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, param?: string | null, code?: string | null}} details
   */
  constructor(message, { status = 0, param = null, code = null } = {}) {
    super(message);
    Object.assign(this, { status, param, code });
  }
}

/**
 * @param {string} path below this page
 * @param {RequestInit} options
 * @param {string} key sent if not empty
 * @returns {Promise<Response>} that says success
 */
async function call(path, options, key) {
  const headers = { ...options.headers, ...(key && { authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The service does not answer.");
  }
  if (response.ok) return response;
  const text = await response.text();
  let error = {};
  try {
    error = JSON.parse(text).error ?? {};
  } catch {
    // A proxy in front of the service speaks HTML.
  }
  const message = error.message ?? `The service answered ${response.status}.`;
  throw new ApiError(message, { ...error, status: response.status });
}

/**
 * The events of an answer that is streamed as `data: JSON`.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* serverEvents(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The connection broke before the audio was complete.");
    }
    if (piece.done) return;
    const lines = (rest + decoder.decode(piece.value, { stream: true })).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:") && line.trim() !== "data: [DONE]") {
        yield JSON.parse(line.slice(5));
      }
    }
  }
}

/** @param {string} text base64 */
function bytesOf(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/**
 * JSON of fields whose values are already JSON. A seed may be larger than the numbers of
 * JavaScript are exact.
 * @param {[string, string | undefined][]} fields; those without a value are left out
 */
function jsonOf(fields) {
  const given = fields.filter(([, value]) => value !== undefined);
  return `{${given.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(", ")}}`;
}

/**
 * A command for a POSIX shell.
 * @param {string} body JSON
 * @param {boolean} keyed whether a key was sent; the command names a variable in its place
 */
function curlCommand(body, keyed) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  return [
    `curl ${quoted(new URL("v1/audio/speech", document.baseURI).href)}`,
    "  -H 'content-type: application/json'",
    ...(keyed ? ['  -H "authorization: Bearer $SPEECHLM_API_KEY"'] : []),
    `  -d ${quoted(body)}`,
    "  -o speech.wav",
  ].join(" \\\n");
}

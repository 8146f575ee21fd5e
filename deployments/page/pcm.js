/** Makes samples of bytes; a sample may be cut between two pieces. */
class PcmReader {
  #half = new Uint8Array(0);

  /**
   * @param {Uint8Array} bytes signed 16-bit little-endian samples, one channel
   * @returns {Int16Array} the samples that are complete
   */
  read(bytes) {
    const joined = new Uint8Array(this.#half.length + bytes.length);
    joined.set(this.#half);
    joined.set(bytes, this.#half.length);
    const count = joined.length >> 1;
    this.#half = joined.slice(2 * count);
    const view = new DataView(joined.buffer);
    return Int16Array.from({ length: count }, (_, i) => view.getInt16(2 * i, true));
  }
}

/**
 * @param {Int16Array[]} pieces
 * @param {number} rate in Hz
 * @returns {Blob} a WAV file, one channel
 */
function wavFile(pieces, rate) {
  const size = 2 * pieces.reduce((sum, piece) => sum + piece.length, 0);
  const view = new DataView(new ArrayBuffer(44 + size));
  const tag = (at, text) => [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  tag(0, "RIFF");
  view.setUint32(4, 36 + size, true);
  tag(8, "WAVEfmt ");
  view.setUint32(16, 16, true); // size of the format
  view.setUint16(20, 1, true); // integer samples
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true); // bytes per second
  view.setUint16(32, 2, true); // bytes per frame
  view.setUint16(34, 16, true); // bits
  tag(36, "data");
  view.setUint32(40, size, true);
  let at = 44;
  for (const piece of pieces) {
    for (const sample of piece) {
      view.setInt16(at, sample, true);
      at += 2;
    }
  }
  return new Blob([view], { type: "audio/wav" });
}

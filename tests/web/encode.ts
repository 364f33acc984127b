// The writer's side of the maps, so that what the page decodes can be compared with what went in.

export interface Encoded {
  encoding: "u8-square";
  row_max: string;
  data: string;
}

/** rows[i] holds keys 0..i in a causal text, all keys otherwise. */
export function encodeMap(rows: number[][]): Encoded {
  const bytes: number[] = [];
  const most = new DataView(new ArrayBuffer(4 * rows.length));
  rows.forEach((row, i) => {
    most.setFloat32(4 * i, row.reduce((a, b) => Math.max(a, b), 0), true);
    const scale = most.getFloat32(4 * i, true);
    for (const weight of row) bytes.push(scale > 0 ? Math.round(255 * Math.sqrt(Math.min(1, weight / scale))) : 0);
  });
  return {
    encoding: "u8-square",
    row_max: Buffer.from(most.buffer).toString("base64"),
    data: Buffer.from(bytes).toString("base64"),
  };
}

/** Puts a report into the page as the writer does. */
export function fill(page: string, report: unknown): string {
  const [before, after] = page.split("__HEADLIGHT_DATA__");
  return before + JSON.stringify(report).replaceAll("<", "\\u003c") + after;
}

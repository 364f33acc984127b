// From the text of the page's data element to a report.

import { FORMAT, type Report } from "./data";
import { DataError } from "./shape";
import { validate } from "./validate";

/** Reads the report; throws a DataError whose message can be shown to a person. */
export function readReport(source: string | null | undefined): Report {
  const json = source?.trim() ?? "";
  if (json === "") throw new DataError("This page holds no report: its data is missing.");
  if (!json.startsWith("{")) {
    throw new DataError("This is the page of a report without its data; “headlight report MODEL --out report.html” writes one with data.");
  }
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new DataError("The report's data is damaged or cut short: it is not JSON. Write the report again.");
  }
  const format = (value as { format?: unknown }).format;
  if (format !== FORMAT) {
    const found = typeof format === "string" ? `"${format}"` : "no format";
    throw new DataError(
      `This page reads "${FORMAT}", the data has ${found}. Write the report again with the Headlight that this page came from.`,
    );
  }
  return validate(value);
}

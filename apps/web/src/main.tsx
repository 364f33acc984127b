import { render } from "preact";
import { App } from "./app";
import { readReport } from "./load";
import { DataError } from "./shape";
import "./styles/base.css";
import "./styles/header.css";
import "./styles/heads.css";
import "./styles/map.css";
import "./styles/tables.css";
import "./styles/print.css";
import { startTheme } from "./theme";

const root = document.getElementById("app")!;

function start() {
  try {
    const report = readReport(document.getElementById("headlight-data")?.textContent);
    document.title = report.title;
    return <App report={report} />;
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return (
      <div class="failure" role="alert">
        <h1>This report cannot be shown</h1>
        <p>{error.message}</p>
      </div>
    );
  }
}

startTheme();
render(start(), root);

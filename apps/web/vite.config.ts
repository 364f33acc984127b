import { defineConfig } from "vite";
import { singleFile } from "./single-file";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    cssTarget: "chrome123",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
    rollupOptions: { output: { format: "iife" } },
  },
  plugins: [singleFile("report.html")],
});

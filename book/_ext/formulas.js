// Converts formulas for formulas.py: reads one as JSON from each line of the standard input, and answers in JSON.
import process from "node:process";
import readline from "node:readline";
import temml from "../_vendor/temml.mjs";

function convert({ tex, displayMode }) {
  try {
    return { mathml: temml.renderToString(tex, { displayMode, throwOnError: true }) };
  } catch (error) {
    return { error: error.message.replaceAll("\u0332", "").trim() }; // without the lines below letters
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(convert(JSON.parse(line))));
}

// Starts the server on a free port and stops it again.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const kReadyMs = 120_000;

/** { url, stop } once the model is loaded. `flags` are further ones of `spel serve`. */
export async function startServer(binary, model, flags = []) {
  const child = spawn(
    binary,
    ["serve", "--model", model, "--port", "0", "--sequences", "2", "--max-seq", "1024", ...flags],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const log = [];
  const url = await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        log.push(line);
        const listening = line.match(/listening url=(\S+)/);
        if (listening) resolve(listening[1]);
      });
    }
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${binary} ended with ${code}:\n${log.join("\n")}`)));
  });
  const deadline = Date.now() + kReadyMs;
  for (;;) {
    const response = await fetch(`${url}/health`);
    await response.body?.cancel();
    if (response.ok) break;
    if (Date.now() > deadline) throw new Error(`not ready in ${kReadyMs} ms:\n${log.join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  const stop = () =>
    new Promise((resolve) => {
      if (child.exitCode !== null) return resolve(child.exitCode);
      child.once("exit", resolve);
      child.kill("SIGTERM");
    });
  return { url, stop };
}

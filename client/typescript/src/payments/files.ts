import { link, mkdir, open, readFile, rm } from "node:fs/promises";
import path from "node:path";

import type { IntentStore } from "./payer.js";

/**
 * Keeps a payer's intents in a folder, which must survive the process and, in a container,
 * be on a volume. A file is there whole or not at all, also after a crash of the machine,
 * and never changes. The files hold signed authorizations; only their owner can read them.
 */
export class FileIntents implements IntentStore {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = path.resolve(dir);
  }

  async get(name: string): Promise<string | undefined> {
    try {
      return await readFile(this.#file(name), "utf8");
    } catch (err) {
      if (err instanceof Error && "code" in err && err.code === "ENOENT") return undefined;
      throw err;
    }
  }

  async put(name: string, value: string): Promise<string> {
    const to = this.#file(name);
    const dir = path.dirname(to);
    if ((await this.get(name)) === undefined) {
      await makeFolder(dir);
      const half = path.join(dir, `.${path.basename(to)}-${crypto.randomUUID()}`);
      try {
        const file = await open(half, "wx", 0o600);
        try {
          await file.writeFile(value);
          await file.sync();
        } finally {
          await file.close();
        }
        // A link, unlike a rename, fails where the name is taken.
        await link(half, to).catch((err: NodeJS.ErrnoException) => {
          if (err.code !== "EEXIST") throw err;
        });
      } finally {
        await rm(half, { force: true });
      }
    }
    await syncFolder(dir);
    return await readFile(to, "utf8");
  }

  #file(name: string): string {
    return path.join(this.dir, `${name}.json`);
  }
}

/** Makes a folder, and its entries in those above it, survive a crash. */
async function makeFolder(dir: string): Promise<void> {
  const made = await mkdir(dir, { recursive: true, mode: 0o700 });
  for (let at = dir; made !== undefined; at = path.dirname(at)) {
    await syncFolder(path.dirname(at));
    if (at === made) break;
  }
}

async function syncFolder(dir: string): Promise<void> {
  if (process.platform === "win32") return; // it has no such thing
  const folder = await open(dir, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import path from "node:path";

import { rawMembers, RawJSON, stringify } from "./json.js";
import { newId } from "./occurrences.js";

/** The outcome of a call as the server takes it; result and error are JSON texts. */
export interface Finish {
  fence?: number;
  outcome: string;
  result?: string;
  error?: string;
  reference?: string;
  result_omitted?: boolean;
  result_size?: number;
  result_digest?: string;
  log_position?: string;
}

/** One outcome on its way to the server. */
export interface Spooled {
  run_id: string;
  effect_id: string;
  key: string;
  finish: Finish;
}

/** The body of a finish. */
export function finishBody(f: Finish, more: { run_id?: string; key?: string } = {}): string {
  const raw = (text: string | undefined) => (text === undefined ? undefined : new RawJSON(text));
  return stringify({ ...more, ...f, result: raw(f.result), error: raw(f.error) });
}

/** Holds what the server refused: an outcome is never dropped, but repeating it would not help. */
const rejected = "rejected";

/**
 * A folder with one file for each outcome that the server does not have yet, of the form
 * that every client of Quittance writes and delivers. A file is there whole or not at
 * all, also after a crash of the machine. Several processes may share the folder; an
 * outcome delivered twice is recorded once.
 */
export class Spool {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** Writes an outcome durably and returns its file's name. Names sort by time. */
  async save(o: Spooled): Promise<string> {
    const name = `${timestamp(new Date())}-${newId().slice(0, 8)}.json`;
    await write(this.dir, name, o);
    return name;
  }

  /** Keeps an outcome aside for a person. */
  async reject(name: string, o: Spooled): Promise<void> {
    await write(path.join(this.dir, rejected), name, o);
  }

  /** Lists what waits, oldest first. A folder that does not exist holds nothing. */
  async names(): Promise<string[]> {
    const entries = await readdir(this.dir, { withFileTypes: true }).catch((err: unknown) => {
      if (isAbsent(err)) return [];
      throw err;
    });
    return entries
      .filter((e) => e.isFile() && e.name.endsWith(".json") && !e.name.startsWith("."))
      .map((e) => e.name)
      .sort();
  }

  /** Reads one outcome; undefined when another process delivered it meanwhile. */
  async load(name: string): Promise<Spooled | undefined> {
    let text: string;
    try {
      text = await readFile(path.join(this.dir, name), "utf8");
    } catch (err) {
      if (isAbsent(err)) return undefined;
      throw err;
    }
    return read(text);
  }

  /**
   * Forgets a delivered outcome. Should the removal be lost in a crash, the outcome is
   * delivered once more, which changes nothing.
   */
  async remove(name: string): Promise<void> {
    await rm(path.join(this.dir, name), { force: true });
  }

  /** Moves a file that cannot be read out of the way. */
  async setAside(name: string): Promise<void> {
    const dir = path.join(this.dir, rejected);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await rename(path.join(this.dir, name), path.join(dir, name));
  }
}

async function write(dir: string, name: string, o: Spooled): Promise<void> {
  const text = `{"run_id":${stringify(o.run_id)},"effect_id":${stringify(o.effect_id)},"key":${stringify(o.key)},"finish":${finishBody(o.finish)}}`;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const half = path.join(dir, `.${name}-${newId().slice(0, 8)}`);
  try {
    const file = await open(half, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(half, path.join(dir, name));
  } catch (err) {
    await rm(half, { force: true }).catch(() => {});
    throw err;
  }
  await syncFolder(dir);
}

/** Makes a rename in a folder survive a crash of the machine. */
async function syncFolder(dir: string): Promise<void> {
  if (process.platform === "win32") return; // it has no such thing
  const folder = await open(dir, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Reads a file of any client; result and error stay the bytes that they are. */
function read(text: string): Spooled {
  const whole = JSON.parse(text) as { run_id?: unknown; effect_id?: unknown; key?: unknown; finish?: unknown };
  const { run_id, effect_id, key, finish } = whole;
  if (typeof run_id !== "string" || typeof effect_id !== "string" || typeof finish !== "object" || finish === null) {
    throw new SyntaxError("not a spooled outcome");
  }
  const raw = rawMembers(rawMembers(text).get("finish") ?? "");
  const f = { ...(finish as Finish) };
  for (const name of ["result", "error"] as const) {
    const member = raw.get(name);
    if (member !== undefined) f[name] = member;
  }
  return { run_id, effect_id, key: typeof key === "string" ? key : "", finish: f };
}

function isAbsent(err: unknown): boolean {
  return err instanceof Error && "code" in err && err.code === "ENOENT";
}

/** Like 20260102T150405.000000, in UTC. */
function timestamp(t: Date): string {
  return `${t.toISOString().slice(0, 23).replaceAll(/[-:]/g, "")}000`;
}

/** Apart for each server and token, so that an outcome never reaches another account. */
export function defaultSpool(server: string, token: string): string {
  const owner = createHash("sha256").update(`${server}\n${token}`).digest("hex").slice(0, 16);
  return path.join(cacheFolder(), "quittance", "spool", owner);
}

/** The user's folder for what programs keep, as every client of Quittance finds it. */
function cacheFolder(): string {
  const { XDG_CACHE_HOME, LocalAppData } = process.env;
  if (process.platform === "win32") return LocalAppData || tmpdir();
  const home = homedir();
  if (process.platform === "darwin") return home ? path.join(home, "Library", "Caches") : tmpdir();
  if (XDG_CACHE_HOME) return path.isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : tmpdir();
  return home ? path.join(home, ".cache") : tmpdir();
}

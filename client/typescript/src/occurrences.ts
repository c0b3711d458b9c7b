import { randomFillSync } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const idLength = 26;

/** Random bytes in store: to ask for a few costs as much as to ask for many. */
const bytes = Buffer.alloc(idLength * 128);
let used = bytes.length;

/** An id that no other process makes: of attempts and files. */
export function newId(): string {
  if (used === bytes.length) {
    randomFillSync(bytes);
    used = 0;
  }
  let id = "";
  for (const end = used + idLength; used < end; used++) id += alphabet.charAt((bytes[used] ?? 0) & 31);
  return id;
}

/** What is known of the calls with one digest. Numbers start at 1. */
interface Identical {
  done: Set<number>; // came back
  busy: Map<number, number>; // how many perform it now
  attempt: Map<number, string>; // the attempt id of a begin that got no answer
}

/**
 * Tells "again" from "twice" within a run: the n-th identical call that came back with
 * an outcome used up n. A call that did not come back gives its number free again, so
 * that the next identical call is the same one.
 */
export class Occurrences {
  #calls = new Map<string, Identical>(); // by digest
  #byCall = new Map<string, number>(); // digest and call id -> its occurrence

  constructor(saved: Record<string, number> = {}) {
    for (const [digest, n] of Object.entries(saved)) {
      const same = this.#same(digest);
      for (let i = 1; i <= n; i++) same.done.add(i);
    }
  }

  #same(digest: string): Identical {
    let same = this.#calls.get(digest);
    if (!same) this.#calls.set(digest, (same = { done: new Set(), busy: new Map(), attempt: new Map() }));
    return same;
  }

  /**
   * Gives the right to make one call: under the given number, or the number that callId
   * had with this digest before, or the lowest that is neither used up nor under way.
   */
  take(digest: string, callId: string | undefined, given: number | undefined): Turn {
    const same = this.#same(digest);
    const known = callId ? this.#byCall.get(digest + callId) : undefined;
    let n = given ?? known ?? 1;
    if (given === undefined && known === undefined) while (same.done.has(n) || same.busy.has(n)) n++;
    if (callId) this.#byCall.set(digest + callId, n);
    same.busy.set(n, (same.busy.get(n) ?? 0) + 1);
    return new Turn(same, n);
  }

  /**
   * What a checkpoint saves: how many came back, up to the first that did not, so that a
   * resumed run makes that one again first.
   */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const [digest, same] of this.#calls) {
      let n = 0;
      while (same.done.has(n + 1)) n++;
      if (n > 0) counts[digest] = n;
    }
    return counts;
  }
}

/** The right to make one call under one occurrence. */
export class Turn {
  readonly occurrence: number;
  /** The one id of all tries of this begin. */
  readonly attemptId: string;
  #same: Identical;

  /** @internal */
  constructor(same: Identical, occurrence: number) {
    this.#same = same;
    this.occurrence = occurrence;
    this.attemptId = same.attempt.get(occurrence) ?? newId();
  }

  /**
   * Keeps the attempt id for the next identical call: the begin may have arrived, and
   * only the same id can be told its answer.
   */
  unanswered(): void {
    this.#same.attempt.set(this.occurrence, this.attemptId);
  }

  /** Forgets the attempt id: the next begin of this occurrence is another try. */
  answered(): void {
    this.#same.attempt.delete(this.occurrence);
  }

  /** Gives the number back, used up when the call came back with an outcome. */
  end(cameBack: boolean): void {
    const left = (this.#same.busy.get(this.occurrence) ?? 1) - 1;
    if (left > 0) this.#same.busy.set(this.occurrence, left);
    else this.#same.busy.delete(this.occurrence);
    if (cameBack) this.#same.done.add(this.occurrence);
  }
}

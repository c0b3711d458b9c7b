// Gateways in the frameworks that x402 has middleware for. Next needs none of it: its
// handlers are functions of a Request, and `gateway.handle(request, withX402(...))` is one.
import type { IncomingMessage, ServerResponse } from "node:http";

import type { Gateway } from "./gateway.js";

/** For Hono, before x402's own: app.use(honoGateway(gateway)). */
export function honoGateway(gateway: Gateway) {
  return async (c: { req: { raw: Request }; res: Response | undefined }, next: () => Promise<void>): Promise<void> => {
    const answer = await gateway.handle(c.req.raw, async () => {
      await next();
      return c.res as Response;
    });
    c.res = undefined; // else the headers of the answer before would be added
    c.res = answer;
  };
}

/**
 * For Express, before x402's own and behind a body parser: app.use(express.json(),
 * expressGateway(gateway)). The purchase is told by the parsed body.
 */
export function expressGateway(gateway: Gateway) {
  return (req: IncomingMessage & { body?: unknown; originalUrl?: string; protocol?: string }, res: ServerResponse, next: (err?: unknown) => void): void => {
    const has = req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > 0;
    if (has && req.body === undefined) return next(new Error("a paid route needs a body parser before expressGateway"));
    const headers = new Headers();
    for (const [name, value] of Object.entries(req.headers)) if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
    const body = has ? (req.body instanceof Uint8Array ? new Uint8Array(req.body) : typeof req.body === "string" ? req.body : JSON.stringify(req.body)) : undefined;
    const request = new Request(`${req.protocol ?? "http"}://${req.headers.host ?? "localhost"}${req.originalUrl ?? req.url ?? "/"}`, {
      method: req.method ?? "GET", headers, ...(body !== undefined && req.method !== "GET" && req.method !== "HEAD" && { body }),
    });
    const real = { writeHead: res.writeHead, write: res.write, end: res.end, flushHeaders: res.flushHeaders };
    gateway
      .handle(request, () => new Promise<Response>((resolve) => capture(res, resolve, next)))
      .then(async (answer) => {
        Object.assign(res, real);
        for (const name of res.getHeaderNames()) res.removeHeader(name);
        res.statusCode = answer.status;
        answer.headers.forEach((value, name) => res.setHeader(name, value));
        res.end(new Uint8Array(await answer.arrayBuffer()));
      })
      .catch((err: unknown) => {
        Object.assign(res, real);
        next(err);
      });
  };
}

/** Lets what is written to res be an answer of its own, of which the payer sees nothing yet. */
function capture(res: ServerResponse, done: (r: Response) => void, next: () => void): void {
  const chunks: Uint8Array[] = [];
  const take = (chunk: unknown, encoding?: unknown) => {
    if (chunk === undefined || chunk === null || typeof chunk === "function") return;
    chunks.push(typeof chunk === "string" ? Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8") : new Uint8Array(chunk as Uint8Array));
  };
  res.writeHead = function (this: ServerResponse, status: number, ...rest: unknown[]) {
    this.statusCode = status;
    const headers = rest.find((x) => typeof x === "object" && x !== null);
    if (headers && !Array.isArray(headers)) for (const [name, value] of Object.entries(headers)) this.setHeader(name, value as string);
    return this;
  } as typeof res.writeHead;
  res.write = ((chunk: unknown, encoding?: unknown) => {
    take(chunk, encoding);
    return true;
  }) as typeof res.write;
  res.flushHeaders = () => {};
  res.end = ((chunk?: unknown, encoding?: unknown) => {
    take(chunk, encoding);
    const headers = new Headers();
    for (const [name, value] of Object.entries(res.getHeaders())) if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : String(value));
    const empty = [204, 205, 304].includes(res.statusCode);
    done(new Response(empty ? null : Buffer.concat(chunks), { status: res.statusCode, headers }));
    return res;
  }) as typeof res.end;
  next();
}

/** Converts responses other than successes into errors. */

import { EngineError } from './errors.js';

/** Reads the rest of the response. */
export async function refusalOf(response: Response): Promise<EngineError> {
  const { status, headers } = response;
  const code = headers.get('x-error-code');
  const text = await response.text();
  const body = parsed(text);
  // A 408 has no code; without a request id, too, the response is not from an engine.
  if (code === null && !headers.has('x-request-id')) return foreign(response, text);
  const told = (body as { error?: unknown } | undefined)?.error;
  const message = typeof told === 'string' ? told : `the server answered ${status}`;
  return new EngineError({
    status,
    code: code ?? `HTTP_${status}`,
    message,
    field: fieldOf(message, body),
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterMs: retryAfterMs(headers),
    body,
  });
}

/** A success that is not from an engine. */
export async function noEngine(response: Response): Promise<EngineError> {
  return foreign(response, await response.text());
}

function foreign({ status, url, headers }: Response, text: string): EngineError {
  const place = url === '' ? 'the address' : url;
  const goal = headers.get('location');
  const type = headers.get('content-type')?.split(';')[0];
  const told = [
    goal === null ? '' : `, to ${goal}`,
    type === undefined ? '' : ` with ${type}`,
  ].join('');
  return new EngineError({
    status,
    code: isGateway(status) ? `HTTP_${status}` : 'CLIENT_NO_ENGINE',
    message: isGateway(status)
      ? `${place} was answered by a gateway: ${status}${told}`
      : `${place} answered, but is not an engine: ${status}${told}`,
    retryAfterMs: retryAfterMs(headers),
    body: text.slice(0, BODY_SHOWN_MAX),
  });
}

/** Limit for the body of a foreign response. */
const BODY_SHOWN_MAX = 1_000;

/** Statuses of proxies whose engine is unavailable. */
const isGateway = (status: number) =>
  status === 408 || status === 429 || (status >= 502 && status <= 504);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The status alone is reported.
    return undefined;
  }
}

function retryAfterMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
}

/** For a definition, the path of the first finding; otherwise the start of the message. */
function fieldOf(message: string, body: unknown): string | undefined {
  const first = (body as { errors?: readonly { path?: string }[] } | undefined)?.errors?.[0]?.path;
  return first ?? FIELD.exec(message)?.[1];
}

/** `invalid argument: blocks[2].id must be …` or `the parameter stat is …` */
const FIELD =
  /^invalid argument: (?:the (?:parameter|header) )?([a-z_][\w-]*(?:\.\w+|\[\d+\])*)(?=: | must | is | has )/i;

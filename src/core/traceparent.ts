/** The header `traceparent` of W3C Trace Context, stored and passed on in the form of version 00. */

type TraceContext = NonNullable<ReturnType<typeof parseTraceparent>>;
const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const LENGTH = 55;
const ZEROS = /^0+$/;

/**
 * Ignores the additions of later versions. Undefined for a malformed header. `spanId` is the caller's span, which becomes
 * the parent; the lowest bit of `flags` is set if the trace is recorded.
 */
export function parseTraceparent(header: string) {
  const match = HEADER.exec(header.trim());
  if (match === null) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = match;
  if (version === 'ff' || ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  if (version === '00') return rest === undefined ? { traceId, spanId, flags } : undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & 1 ? '01' : '00' };
}

export function formatTraceparent({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags}`;
}

/** The header in the form of version 00; undefined for an absent or malformed one. */
export function keptTraceparent(header: string | undefined): string | undefined {
  if (header === undefined || header.length < LENGTH) return undefined;
  const context = parseTraceparent(header);
  return context && formatTraceparent(context);
}

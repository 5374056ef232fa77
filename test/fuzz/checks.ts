/**
 * What must hold of every answer, whatever was asked, and what each sort of request may be answered.
 */

import { type Answer, describeAnswer, type Operation } from '../helpers/contract.js';

/** What a request is meant to show. */
export type Purpose =
  | 'prepared'
  | 'valid'
  | 'hostile'
  | 'negative'
  | 'malformed'
  | 'method'
  | 'unauthenticated'
  | 'no-tenant'
  | 'foreign'
  | 'gone';

/** Stack traces, SQL, and paths of the server's machine. */
const INTERNALS =
  /\bat .*:\d+:\d+|SQLSTATE|node_modules|\/home\/|\/work\/|file:\/\/|\b(?:select|insert|update|delete)\b .*\b(?:from|into|set)\b|duplicate key|violates|relation "|Cannot read propert|is not a function/i;

/** What was planted to show up where it must not. */
export const POLLUTION = 'polluted_by_fuzz';

/** Requests a retry although nothing is wrong: a deletion is in progress, or the machine is busy. */
const BUSY = /sequence [\w-]+ is being deleted|too many lists and reports are being read/;

/** A trigger may want a secret of its own beside the key. */
const WRONG_SECRET = /x-trigger-secret does not fit/;

/** Refusals that the document announces in words, by operation or for all. */
const RULES_IN_WORDS: readonly RegExp[] = [
  /is not a top-level block of the instance/,
  /must not follow signals\[\d+\], which cancels the instance/,
  /has another namespace or name than that of the instance/,
  /is not unique/,
  /iteration_to must be iteration_from or up to/,
  /iteration\w* (?:is given without|and iteration_from are both given)/,
  /baseline and candidate (?:are the same sequence|differ in their name)/,
  /(?:blocks|on_failure|on_cancel)\[[^"]*\.params\.\w+ (?:is required|must be)/,
  // To be strict is to have warnings refused.
  /,"warnings":\[\{"path":/,
  /send_window must not start and end at the same hour/,
  /transforms\[\d+\]\.\w+ (?:must have|does not exist|leads through|is also|is required|must be)/,
  /(?:classification|policy) and \w+ must not differ when both are sent/,
  /policy\.version must be/,
  /policy\.rules\[\d+\]\.\w+(?:\[\d+\])? (?:must not be blank|must be at most|has no entry)/,
  /(?:requirements|capabilities)\.\w+\[\d+\] must not be blank/,
  /capabilities\.(?:expires|observed)_at must be/,
  /payload_(?:key_)?base64 must be/,
  /must have version or sequence_id|must not name two different sequences/,
  /the target is the version that the instance has/,
  /on_deadline_breach\.handler must be a built-in handler that does something/,
  /dry_run_auto_approve must not be true without dry_run/,
  /: value must be one of /,
  /: comment must be absent: this approval does not allow one/,
  /: refresh_url needs a refresh_token/,
  /: id or name is required/,
  /: name must have letters, digits, dots, _ and - only, or id must be sent beside it/,
  /: trigger [\w-]+ is disabled/,
  /: config\.event_name is required for an event trigger/,
  /choices must not have the value /,
  /secret is required for a new endpoint/,
  /publish\.\w+ must come to at most/,
  /exactly one of sequence_name and publish/,
  /verify\.\w+ (?:is|must be) /,
  /config\.\S+ is unknown/,
  /publish\.\w+: unknown template root/,
  /must not be \. or \.\., which no address has/,
  /secret must (?:not be given beside|be given in) verify/,
  /block: the version has no block /,
  / collects creations \((?:batch|debounce)\): create its instances one by one/,
  /filter\.sequence_id is not the sequence of the path/,
  /invalid argument: context\.data /,
  /^\{"error":"invalid argument: instance [\w-]+ is \w+"\}$/,
];

export interface Exchange {
  readonly purpose: Purpose;
  readonly operation: Operation | undefined;
  readonly method: string;
  readonly path: string;
  readonly answer: Answer;
}

/** What is wrong with an answer, as a sentence; undefined when nothing is. */
export function problemOf(exchange: Exchange): string | undefined {
  const { method, path, answer } = exchange;
  const { status, text } = answer;
  // 502 tells of another server, which is why the document has it for one operation only.
  const isTold = status === 502 || (status === 503 && BUSY.test(text));
  if (isTold) return describeAnswer(method, path, answer);
  if (status >= 500) return `a server error: ${text.slice(0, 300)}`;
  const problem = describeAnswer(method, path, answer);
  if (problem !== undefined) return problem;
  if (status >= 400 && INTERNALS.test(text.replaceAll(path, ''))) return `internals: ${text}`;
  return misfit(exchange);
}

const PUT_OFF = /too many requests: (?:long|\d+) lists/;

function misfit({ purpose, operation, method, answer }: Exchange): string | undefined {
  const { status, text } = answer;
  const isRefused = status >= 400 && status < 500;
  const must = (expected: number) => (status === expected ? undefined : `must be ${expected}`);
  switch (purpose) {
    case 'prepared':
      // On a busy machine others of the tenant may have all that one tenant may have at once.
      return status < 300 || status === 429 ? undefined : 'what must succeed was refused';
    case 'valid':
      if (status === 401 && WRONG_SECRET.test(text)) return undefined;
      return status === 401 || status === 403 ? 'was let in before' : shapeRefusal(answer, method);
    case 'negative':
      return isRefused ? undefined : 'invalid input was accepted';
    case 'malformed':
      return operation?.body === undefined || isRefused ? undefined : 'malformed text was accepted';
    case 'method':
      return must(405) ?? (answer.headers.allow === undefined ? 'names no methods' : undefined);
    case 'unauthenticated':
      return must(401);
    case 'no-tenant':
      return must(400);
    case 'foreign':
    case 'gone':
      // On a busy machine it may be put off beside the long lists of its tenant, and says so.
      if (status === 429 && PUT_OFF.test(text)) return undefined;
      // What a body asks for may be refused before it is looked for.
      return status === 400 ? shapeRefusal(answer, method) : must(404);
    case 'hostile':
      return text.includes(POLLUTION) && status >= 500 ? 'polluted' : undefined;
  }
}

/** A 400 for input that the document allows, unless it says so in words, which an answer to HEAD cannot. */
function shapeRefusal({ status, headers, text }: Answer, method: string): string | undefined {
  if (method === 'HEAD' && headers['x-error-code'] === 'ENG_VALIDATION') return undefined;
  if (status !== 400 || headers['x-error-code'] === 'ENG_INVALID_TRANSITION') return undefined;
  return RULES_IN_WORDS.some((rule) => rule.test(text)) ? undefined : 'valid input was refused';
}

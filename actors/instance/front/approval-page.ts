/** The HTML pages of approval links. They load nothing, and all foreign text is escaped. */

import { createHash } from 'node:crypto';
import { COMMENT_LENGTH_MAX } from '../../../schema/approval.js';
import type { GateChoice } from '../../../schema/step-options.js';
import type { HttpReply } from '../../../src/http/server.js';

export interface Question {
  readonly prompt: string;
  readonly choices: readonly GateChoice[];
  readonly allowComment: boolean;
  /** RFC 3339; null: none. */
  readonly deadline: string | null;
}

const STYLE = `body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34em; margin: 3em auto; padding: 0 1em; }
.prompt { white-space: pre-wrap; overflow-wrap: anywhere; }
textarea { display: block; width: 100%; box-sizing: border-box; margin: .3em 0 1em; font: inherit; }
button { font: inherit; padding: .4em 1.2em; margin: 0 .6em .6em 0; }
.until { color: #555; }`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** The URL is a credential, so it is hidden from caches, other sites and search engines. */
const HEADERS = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['x-robots-tag', 'noindex'],
  ['content-security-policy', POLICY],
] as const;

/** The form posts to its own URL, including the query. */
export function formPage({ prompt, choices, allowComment, deadline }: Question): HttpReply {
  const comment = allowComment
    ? `<label>Comment<textarea name="comment" rows="3" maxlength="${COMMENT_LENGTH_MAX}"></textarea></label>\n`
    : '';
  const buttons = choices.map(
    ({ label, value }) =>
      `<button type="submit" name="value" value="${escaped(value)}">${escaped(label)}</button>`,
  );
  const until = deadline === null ? '' : `<p class="until">Until ${escaped(deadline)}.</p>\n`;
  return htmlPage(
    200,
    'A question for you',
    `<p class="prompt">${escaped(prompt)}</p>\n${until}<form method="post">\n` +
      `${comment}${buttons.join('\n')}\n</form>`,
  );
}

export function notePage(status: number, title: string, text: string): HttpReply {
  return htmlPage(status, title, `<p class="prompt">${escaped(text)}</p>`);
}

function htmlPage(status: number, title: string, content: string): HttpReply {
  return {
    status,
    contentType: 'text/html; charset=utf-8',
    headers: HEADERS,
    body: `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${content}
</body>
</html>
`,
  };
}

const ENTITIES: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' },
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

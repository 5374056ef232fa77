/** Finds template expressions in a text: from two opening braces to two closing ones, outside quotes. */

/** Whether rendering would replace a part of the text. */
export function hasTemplate(text: string): boolean {
  return text.includes('{{') && placesOf(text).next().done !== true;
}

export function templatesIn(text: string): string[] {
  return Array.from(placesOf(text), ({ from, to }) => text.slice(from, to));
}

export function* placesOf(text: string): Generator<{ readonly from: number; readonly to: number }> {
  let open = text.indexOf('{{');
  while (open >= 0) {
    // Advances by one character: of three braces the last two are the opening ones.
    const end = findEnd(text, open + 1);
    if (end.kind === 'none') break;
    if (end.kind === 'close') {
      yield { from: open, to: end.at + 2 };
      open = text.indexOf('{{', end.at + 2);
    } else open = end.at;
  }
}

type End = { readonly kind: 'close' | 'reopen'; readonly at: number } | { readonly kind: 'none' };

/** The next `}}` or `{{` outside quotes. */
function findEnd(text: string, from: number): End {
  let at = from;
  while (at < text.length) {
    const character = text.charAt(at);
    if (character === '"' || character === "'") {
      const close = text.indexOf(character, at + 1);
      if (close < 0) return { kind: 'none' };
      at = close + 1;
    } else if (text.startsWith('}}', at)) return { kind: 'close', at };
    else if (text.startsWith('{{', at)) return { kind: 'reopen', at };
    else at += 1;
  }
  return { kind: 'none' };
}

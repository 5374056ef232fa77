/**
 * The blocking client of Python from the asynchronous one, which is written by hand: the same text without the words of
 * asyncio. So no repair of one of them can be forgotten in the other.
 */

/** In their order; what is not here is the same in both. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\basync (?=def|for|with)/g, ''],
  [/\bawait /g, ''],
  [/\basyncio\b/g, 'time'],
  [/\b__a(?=enter__|exit__)/g, '__'],
  [/\ba(?=close|read|iter_bytes)(?=\w+\()/g, ''],
  [/\bAsyncPages\b/g, 'Page'],
  [/\bAsync(?=[A-Z])/g, ''],
  [/\b_async_operations\b/g, '_operations'],
  [
    /The asynchronous client\./g,
    'The blocking client.\n\nWritten by `npm run generate` from async_client.py.\n',
  ],
  [/For one event loop\./g, 'Threads may share it.'],
];

/** @param text of the asynchronous client */
export function blockingText(text: string): string {
  return WORDS.reduce((made, [word, other]) => made.replace(word, other), text);
}

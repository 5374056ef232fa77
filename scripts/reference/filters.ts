/** The filters of templates. */

import { FILTER_NAMES } from '../../src/core/expression/filters.js';
import { over, type Told, toldTable } from './evaluated.js';
import type { Regions } from './regions.js';
import { rowsFor } from './rows.js';

const FILTERS: Readonly<Record<string, Told>> = {
  upper: {
    forms: ['upper'],
    does: 'The text in capitals. Like most filters of texts, it takes what is no text for an empty one.',
    examples: [
      ...over({ name: 'Ada' }, '{{ data.name | upper }}'),
      ...over({ name: 7 }, '{{ data.name | upper }}'),
    ],
  },
  lower: {
    forms: ['lower'],
    does: 'The text in small letters.',
    examples: over({ mail: 'Ada@Example.ORG' }, '{{ data.mail | lower }}'),
  },
  trim: {
    forms: ['trim'],
    does: 'The text without spaces at its ends.',
    examples: over({ name: '  Ada ' }, '{{ data.name | trim }}'),
  },
  url_encode: {
    forms: ['url_encode'],
    does: 'The text so that it can stand in a URL.',
    examples: over({ name: 'Ada & Co' }, 'https://example.org/?q={{ data.name | url_encode }}'),
  },
  base64: {
    forms: ['base64'],
    does: 'The text in base64.',
    examples: over({ login: 'ada:secret' }, 'Basic {{ data.login | base64 }}'),
  },
  base64_decode: {
    forms: ['base64_decode'],
    does: 'The text that was encoded in base64. Bad base64 fails the step.',
    examples: [
      ...over({ code: 'QWRh' }, '{{ data.code | base64_decode }}'),
      ...over({ code: 'not base64!' }, '{{ data.code | base64_decode }}'),
    ],
  },
  abs: {
    forms: ['abs'],
    does: 'The number without its sign. Null for what is no number.',
    examples: over({ change: -3 }, '{{ data.change | abs }}'),
  },
  round: {
    forms: ['round(digits)'],
    does: 'The number, rounded to this many digits behind the point. The parentheses are needed.',
    examples: over(
      { price: 2.71456 },
      '{{ data.price | round(0) }}',
      '{{ data.price | round(2) }}',
    ),
  },
  replace: {
    forms: ['replace(search, new)'],
    does: 'The text with every `search` replaced. A value that is no text is made one first.',
    examples: over({ phone: '030 123 45' }, "{{ data.phone | replace(' ', '') }}"),
  },
  default: {
    forms: ['default(value)'],
    does: 'The value if there is nothing: null or an empty text. A plain fallback counts null only.',
    examples: [
      ...over({}, "{{ data.name | default('friend') }}"),
      ...over({ name: '' }, "{{ data.name | default('friend') }}", "{{ data.name | 'friend' }}"),
    ],
  },
  truncate: {
    forms: ['truncate(length)', 'truncate(length, suffix)'],
    does: 'The text, cut after so many characters. What was cut is replaced by the suffix.',
    examples: over({ note: 'a long story' }, "{{ data.note | truncate(6, '…') }}"),
  },
  join: {
    forms: ['join(separator)'],
    does: 'The members of an array as one text. An empty text for what is no array.',
    examples: over({ items: ['tea', 'milk'] }, "{{ data.items | join(', ') }}"),
  },
  split: {
    forms: ['split(separator)'],
    does: 'The parts of a text as an array.',
    examples: over({ tags: 'new,paid' }, "{{ data.tags | split(',') }}"),
  },
  hash: {
    forms: ['hash(sha256)'],
    does: 'The SHA-256 of the text, as hexadecimal digits.',
    examples: over({ mail: 'ada@example.org' }, '{{ data.mail | hash(sha256) }}'),
  },
};

export function filterRegions(): Regions {
  return { filters: toldTable('filter', rowsFor('filter', FILTER_NAMES, FILTERS)) };
}

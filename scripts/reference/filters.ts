/** The filters of templates. */

import { FILTER_NAMES } from '../../src/core/expression/filters.js';
import { type Described, exampleTable, over } from './evaluated.js';
import type { Regions } from './regions.js';
import { rowsFor } from './rows.js';

const FILTERS: Readonly<Record<string, Described>> = {
  upper: {
    forms: ['upper'],
    does: 'Upper case. Like most string filters, it treats other types as an empty string.',
    examples: [
      ...over({ name: 'Ada' }, '{{ data.name | upper }}'),
      ...over({ name: 7 }, '{{ data.name | upper }}'),
    ],
  },
  lower: {
    forms: ['lower'],
    does: 'Lower case.',
    examples: over({ mail: 'Ada@Example.ORG' }, '{{ data.mail | lower }}'),
  },
  trim: {
    forms: ['trim'],
    does: 'Without spaces at both ends.',
    examples: over({ name: '  Ada ' }, '{{ data.name | trim }}'),
  },
  url_encode: {
    forms: ['url_encode'],
    does: 'Percent-encoded for a URL.',
    examples: over({ name: 'Ada & Co' }, 'https://example.org/?q={{ data.name | url_encode }}'),
  },
  base64: {
    forms: ['base64'],
    does: 'Encoded in base64.',
    examples: over({ login: 'ada:secret' }, 'Basic {{ data.login | base64 }}'),
  },
  base64_decode: {
    forms: ['base64_decode'],
    does: 'Decoded from base64. Invalid base64 fails the step.',
    examples: [
      ...over({ code: 'QWRh' }, '{{ data.code | base64_decode }}'),
      ...over({ code: 'not base64!' }, '{{ data.code | base64_decode }}'),
    ],
  },
  abs: {
    forms: ['abs'],
    does: 'The absolute value; null for other types.',
    examples: over({ change: -3 }, '{{ data.change | abs }}'),
  },
  round: {
    forms: ['round(digits)'],
    does: 'Rounded to this many decimal places. The parentheses are required.',
    examples: over(
      { price: 2.71456 },
      '{{ data.price | round(0) }}',
      '{{ data.price | round(2) }}',
    ),
  },
  replace: {
    forms: ['replace(search, new)'],
    does: 'Replaces every `search`. Other types are converted to strings first.',
    examples: over({ phone: '030 123 45' }, "{{ data.phone | replace(' ', '') }}"),
  },
  default: {
    forms: ['default(value)'],
    does: 'Replaces null and the empty string. A plain fallback replaces only null.',
    examples: [
      ...over({}, "{{ data.name | default('friend') }}"),
      ...over({ name: '' }, "{{ data.name | default('friend') }}", "{{ data.name | 'friend' }}"),
    ],
  },
  truncate: {
    forms: ['truncate(length)', 'truncate(length, suffix)'],
    does: 'Truncated to this many characters, followed by the suffix if anything was cut.',
    examples: over({ note: 'a long story' }, "{{ data.note | truncate(6, '…') }}"),
  },
  join: {
    forms: ['join(separator)'],
    does: 'The members of an array as one string; empty for other types.',
    examples: over({ items: ['tea', 'milk'] }, "{{ data.items | join(', ') }}"),
  },
  split: {
    forms: ['split(separator)'],
    does: 'The parts of a string as an array.',
    examples: over({ tags: 'new,paid' }, "{{ data.tags | split(',') }}"),
  },
  hash: {
    forms: ['hash(sha256)'],
    does: 'The SHA-256 in hexadecimal digits.',
    examples: over({ mail: 'ada@example.org' }, '{{ data.mail | hash(sha256) }}'),
  },
};

export function filterRegions(): Regions {
  return { filters: exampleTable('filter', rowsFor('filter', FILTER_NAMES, FILTERS)) };
}

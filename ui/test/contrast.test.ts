/** Text on colours that others have chosen. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { luminance, textColorOn } from '../src/lib/contrast.ts';

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

test('text on any colour has the contrast that WCAG asks for', () => {
  for (let at = 0; at < 4_096; at++) {
    const color = `#${[...at.toString(16).padStart(3, '0')].map((digit) => digit + digit).join('')}`;
    assert.ok(contrast(color, textColorOn(color)) >= 4.5, color);
  }
});

test('it is white on what is dark, and black on what is light', () => {
  assert.equal(textColorOn('#b3261e'), '#ffffff');
  assert.equal(textColorOn('#ffe066'), '#000000');
});

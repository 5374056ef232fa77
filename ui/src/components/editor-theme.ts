/** How the editor looks: by the tokens of the page, so that it follows its theme. */

import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const look = EditorView.theme({
  '&': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    fontSize: '13px',
    border: '1px solid var(--line-strong)',
    borderRadius: 'var(--radius-small)',
  },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '1px' },
  '.cm-content': { fontFamily: 'var(--font-mono)', caretColor: 'var(--text)' },
  '.cm-gutters': {
    backgroundColor: 'var(--surface-2)',
    color: 'var(--text-dim)',
    border: 'none',
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--accent-bg)',
  },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', borderColor: 'var(--line)' },
  '.cm-scroller': { maxHeight: '70vh', overflow: 'auto' },
});

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--info)' },
  { tag: tags.string, color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--wait)' },
]);

export const editorTheme = [look, syntaxHighlighting(colors)];

/**
 * Where an editor lives: in a document its styles would be a `<style>` element, which the content security policy
 * refuses; in a shadow tree they are adopted.
 */
export function shadowOf(element: HTMLElement): ShadowRoot {
  return element.shadowRoot ?? element.attachShadow({ mode: 'open' });
}

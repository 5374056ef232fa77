/** The editor's theme, built from the page's tokens, so that it follows the page's theme. */

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
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--surface-3)' },
  '.cm-foldPlaceholder': {
    backgroundColor: 'var(--surface-3)',
    borderColor: 'var(--line)',
    color: 'var(--text-dim)',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--line)',
    borderRadius: 'var(--radius-small)',
    boxShadow: 'var(--shadow-high)',
    color: 'var(--text)',
  },
  '.cm-completions': {
    maxWidth: 'min(480px, 90vw)',
    maxHeight: '220px',
    margin: '0',
    padding: '4px',
    overflowY: 'auto',
    listStyle: 'none',
    fontFamily: 'var(--font-mono)',
  },
  '.cm-completions li': {
    padding: '3px 8px',
    borderRadius: 'var(--radius-small)',
    cursor: 'pointer',
    overflow: 'hidden',
    textOverflow: 'ellipsis',
    whiteSpace: 'nowrap',
  },
  '.cm-completions li[aria-selected=true]': { backgroundColor: 'var(--accent-bg)' },
  '.cm-completions span': {
    marginLeft: '10px',
    color: 'var(--text-dim)',
    fontFamily: 'var(--font)',
    fontSize: '12px',
  },
  '.cm-diagnostic': { padding: '6px 10px', fontFamily: 'var(--font)' },
  '.cm-panels': {
    backgroundColor: 'var(--surface-2)',
    borderColor: 'var(--line)',
    color: 'var(--text)',
  },
  '.cm-panel.cm-panel-lint ul [aria-selected]': {
    backgroundColor: 'var(--accent-bg)',
    color: 'var(--text)',
  },
  '.cm-scroller': { maxHeight: 'var(--editor-height, 70vh)', overflow: 'auto' },
  '.cm-changedLine': { backgroundColor: 'color-mix(in oklab, var(--ok-bg), transparent 40%)' },
  '.cm-changedText': { background: 'var(--ok-bg)' },
  '.cm-deletedChunk': { backgroundColor: 'color-mix(in oklab, var(--danger-bg), transparent 40%)' },
  '.cm-deletedChunk .cm-deletedText': { background: 'var(--danger-bg)' },
  '.cm-collapsedLines': {
    background: 'var(--surface-2)',
    color: 'var(--text-dim)',
    padding: '4px 12px',
  },
  '.cm-collapsedLines:before, .cm-collapsedLines:after': { content: '"···"' },
  '.cm-lintRange': { paddingBottom: '0', textDecorationSkipInk: 'none' },
  '.cm-lintRange-active': { backgroundColor: 'var(--surface-3)' },
  ...marks('error', '--danger'),
  ...marks('warning', '--warn'),
});

/** Drawn without images: CodeMirror uses `data:` URLs, which the content security policy blocks. */
function marks(
  severity: 'error' | 'warning',
  color: string,
): Parameters<typeof EditorView.theme>[0] {
  return {
    [`.cm-lintRange-${severity}`]: {
      backgroundImage: 'none',
      textDecoration: `underline wavy var(${color})`,
    },
    [`.cm-lint-marker-${severity}`]: {
      content: 'normal',
      width: '9px',
      height: '9px',
      margin: '5px 2px',
      borderRadius: severity === 'error' ? '50%' : '0',
      backgroundColor: `var(${color})`,
    },
    [`.cm-diagnostic-${severity}`]: { borderLeft: `3px solid var(${color})` },
    [`.cm-lintPoint-${severity}:after`]: { borderBottomColor: `var(${color})` },
  };
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--info)' },
  { tag: tags.string, color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--wait)' },
]);

export const editorTheme = [look, syntaxHighlighting(colors)];

/**
 * Hosts an editor in a shadow tree: in the document its styles would be a `<style>` element, which the content security
 * policy blocks; in a shadow tree they are adopted.
 */
export function shadowOf(element: HTMLElement): ShadowRoot {
  return element.shadowRoot ?? element.attachShadow({ mode: 'open' });
}

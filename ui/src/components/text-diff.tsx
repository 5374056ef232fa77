/** A unified diff of two texts; unchanged parts are folded. */

import { json } from '@codemirror/lang-json';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { editorTheme, shadowOf } from './editor-theme.ts';

export interface TextDiffProps {
  readonly label: string;
  readonly before: string;
  readonly after: string;
}

export default function TextDiff({ label, before, after }: TextDiffProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.current === null) return undefined;
    const root = shadowOf(place.current);
    const made = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: after,
        extensions: [
          lineNumbers(),
          json(),
          unifiedMergeView({
            original: before,
            mergeControls: false,
            collapseUnchanged: { margin: 3, minSize: 6 },
          }),
          EditorState.readOnly.of(true),
          EditorView.lineWrapping,
          // Focusable although it is read-only, so that the keyboard can scroll it.
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          editorTheme,
        ],
      }),
    });
    return () => made.destroy();
  }, [label, before, after]);
  return <div ref={place} />;
}

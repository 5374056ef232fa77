/** A JSON editor, by CodeMirror, that marks errors where they are. */

import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { bracketMatching, foldGutter, indentOnInput } from '@codemirror/language';
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { flushSync } from 'react-dom';
import { readJson } from '../lib/json-text.ts';
import { type Complete, completion } from './completion.ts';
import { editorTheme, shadowOf } from './editor-theme.ts';

export interface EditorProps {
  readonly label: string;
  readonly value: string;
  readonly isReadOnly?: boolean;
  readonly onChange?: (value: string) => void;
  /** Reports problems of a text that is valid JSON; called shortly after typing. */
  readonly check?: (text: string) => Promise<readonly Diagnostic[]>;
  /** What can be written at a position. */
  readonly complete?: Complete;
  /** Selects this range and scrolls to it whenever it is another object. */
  readonly place?: { readonly from: number; readonly to: number } | undefined;
}

const CHECK_DELAY_MS = 400;

/** Tab moves the focus out of the editor, as in any other field. */
export default function Editor(props: EditorProps) {
  const { label, value, isReadOnly, onChange, check, complete, place } = props;
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef({ onChange, check, complete });
  latest.current = { onChange, check, complete };
  const isSetting = useRef(false);

  // biome-ignore lint/correctness/useExhaustiveDependencies: later values are handed to the editor below
  useEffect(() => {
    if (frame.current === null) return undefined;
    const root = shadowOf(frame.current);
    const made = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          foldGutter(),
          history(),
          bracketMatching(),
          indentOnInput(),
          json(),
          lintGutter(),
          linter(diagnose, { delay: CHECK_DELAY_MS }),
          completion((text, at) => latest.current.complete?.(text, at)),
          keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorState.readOnly.of(isReadOnly ?? false),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || isSetting.current) return;
            // Synchronously: a value that arrived later would be older than what was typed since.
            flushSync(() => latest.current.onChange?.(update.state.doc.toString()));
          }),
          editorTheme,
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [label, isReadOnly]);

  async function diagnose(editor: EditorView): Promise<readonly Diagnostic[]> {
    const broken = jsonParseLinter()(editor);
    if (broken.length > 0) return broken;
    const text = editor.state.doc.toString();
    const read = readJson(text);
    if (read.wrong === undefined) return (await latest.current.check?.(text)) ?? [];
    const from = Math.min(read.at ?? 0, text.length);
    return [{ from, to: from, severity: 'error', message: read.wrong }];
  }

  useEffect(() => {
    const editor = view.current;
    if (editor === undefined || editor.state.doc.toString() === value) return;
    isSetting.current = true;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
    isSetting.current = false;
  }, [value]);

  useEffect(() => {
    const editor = view.current;
    if (editor === undefined || place === undefined) return;
    const end = editor.state.doc.length;
    const [anchor, head] = [Math.min(place.from, end), Math.min(place.to, end)];
    editor.dispatch({
      selection: { anchor, head },
      effects: EditorView.scrollIntoView(anchor, { y: 'center' }),
    });
    editor.focus();
  }, [place]);

  return <div ref={frame} />;
}

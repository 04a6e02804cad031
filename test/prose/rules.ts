import { type Sentence, wordsIn } from './passage.ts';

/** A longer sentence holds more than one idea. */
const WORDS_MAX = 20;

const PREPOSITIONS =
  'of|for|from|with|by|to|in|into|on|onto|at|than|as|about|after|before|against|without|behind|between|through|over|under|beside|besides|like|until|since|per';
const CONJUNCTIONS =
  'but|nor|so|that|if|when|while|because|since|until|unless|although|though|as|where|whether|how|long|often|soon|many|much|once';

type Rule = (sentence: string) => boolean;

const finds =
  (...patterns: RegExp[]): Rule =>
  (sentence) =>
    patterns.some((pattern) => pattern.test(sentence));

/** A question may begin with any word. */
const findsOutsideQuestions = (...patterns: RegExp[]): Rule => {
  const found = finds(...patterns);
  return (sentence) => !sentence.endsWith('?') && found(sentence);
};

/** Each rule names the fault that it finds in a sentence. */
export const RULES: Record<string, Rule> = {
  [`more than ${WORDS_MAX} words`]: (sentence) => wordsIn(sentence) > WORDS_MAX,
  'begins with a clause, not with an actor': findsOutsideQuestions(
    /^(what|who|whom|whose|which|whichever|that|since when)\b/i,
    /^(only )?(nothing|none|all|any|each|one|ones|those|some|he|they) (that|which|who|whose)\b/i,
  ),
  'names no actor': finds(/\b(nobody|no one|whoever|whomever|whosoever|whatever|whatsoever)\b/i),
  'has a clause without a noun before it': findsOutsideQuestions(
    new RegExp(`\\b(${PREPOSITIONS}) (what|who)\\b`, 'i'),
    new RegExp(`(\\b(${CONJUNCTIONS})|[;:(]|\\s[–—-]) (what|whom?)\\b`, 'i'),
    // One of several questions is not a clause of that kind: "how it works, and what it costs".
    /^((?!\b(how|what|which|who|why|when|where|whether)\b).)*(,|\b(and|or)) (what|whom?)\b(?<!, whom?)/i,
    /\bthat which\b/i,
  ),
  'points with "is what"': findsOutsideQuestions(/\b(is|are|was|were|be|been)( not| only| just| exactly)? what\b/i),
  'turns the order of words around': findsOutsideQuestions(
    /^(of|to|for|from|by|with|in|on|at) (whom|whose|which)\b/i,
    /^(nor|never|seldom|not before|not until) (is|are|was|were|does|do|did|has|have|had|can|may|must|will)\b/i,
    /^(should|were|had) (it|they|he|she|this|that|the|a|an|one)\b/i,
  ),
  'uses an archaic word': finds(
    /\b(shall|lest|whence|whereof|wherein|whereby|thereof|therein|thereby|hence|hitherto|henceforth|albeit|upon|unto|nought|naught|hearsay|(of|none of|one of) (ours|theirs|yours|hers))\b/i,
  ),
  'calls a person "he"': finds(/\b(he|him|his|himself)\b/i),
};

export interface Finding {
  line: number;
  rule: string;
  sentence: string;
}

export const findingsIn = ({ line, text }: Sentence): Finding[] =>
  Object.entries(RULES)
    .filter(([, breaks]) => breaks(text))
    .map(([rule]) => ({ line, rule, sentence: text }));

net n { HEADER = { ID = n; }; // words
 node a { TYPE = CPT; HEADER = { ID = a; NAME = "A; b"; }; PARENTS = ();
  DEFINITION = { NAMESTATES = (x, y); PROBABILITIES = (0.25, 0.75); }; };
 node b { TYPE = TRUTHTABLE; PARENTS = (a); DEFINITION = { NAMESTATES = (p, q); RESULTINGSTATES = (q, p); }; };
};

!function(a){for(var b="",c=0;c<a.length;c++)b+=String.fromCharCode(a.charCodeAt(c)^7);console.log(b/1||b)}("abc");var x=1/2/3,r=/[a-z]/g.test("x")?'y':"z";

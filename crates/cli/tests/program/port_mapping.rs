//! `--map-port`, with routers made here: each has an address of loopback to itself, of which Linux has a
//! whole network, and the ports that the protocols have. What they are asked for is looked at.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use haulier::Ticket;

use crate::support::{Dir, Finished, HUNG, Program};

/// A request to a router: a mapping for `lifetime_s` seconds, from and to these ports; 0 seconds end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    lifetime_s: u32,
    inside: u16,
    outside: u16,
}

/// A router at this address of loopback, while the test runs.
struct Router {
    at: Ipv4Addr,
    asked: Receiver<Asked>,
}

impl Router {
    fn next(&self) -> Asked {
        self.asked.recv_timeout(HUNG).expect("the router is asked")
    }
}

/// What a test's router speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Pcp,
    NatPmp,
    /// It says that it may not.
    PcpRefuses,
    Upnp,
}

/// A router that has this public address, and grants mappings for `grants_s` seconds.
fn router(last: u8, speaks: Speaks, public: [u8; 4], grants_s: u32) -> Router {
    let at = Ipv4Addr::new(127, 0, 53, last);
    let (tell, asked) = mpsc::channel();
    if speaks == Speaks::Upnp {
        upnp(at, public, tell);
    } else {
        let socket = UdpSocket::bind((at, 5351)).unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 1100];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let answer = answer(speaks, &buffer[..length], public, grants_s, &tell);
                socket.send_to(&answer, from).unwrap();
            }
        });
    }
    Router { at, asked }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// RFC 6887 and RFC 6886: version 2 is PCP, 0 is NAT-PMP.
fn answer(
    speaks: Speaks,
    request: &[u8],
    public: [u8; 4],
    grants_s: u32,
    tell: &Sender<Asked>,
) -> Vec<u8> {
    match (speaks, request[0], request[1]) {
        (Speaks::NatPmp, 2, _) => vec![0, 0x81, 0, 1, 0, 0, 0, 9],
        (Speaks::NatPmp, 0, 0) => [&[0, 0x80, 0, 0, 0, 0, 0, 9][..], &public].concat(),
        (Speaks::NatPmp, 0, 1) => {
            let asked = Asked {
                lifetime_s: long(request, 8),
                inside: short(request, 4),
                outside: short(request, 6),
            };
            tell.send(asked).unwrap();
            let lifetime = asked.lifetime_s.min(grants_s).to_be_bytes();
            let ports = [&request[4..6], &request[6..8]].concat();
            [&[0, 0x81, 0, 0, 0, 0, 0, 9][..], &ports, &lifetime].concat()
        }
        (_, 2, 1) => {
            let asked = Asked {
                lifetime_s: long(request, 4),
                inside: short(request, 40),
                outside: short(request, 42),
            };
            tell.send(asked).unwrap();
            let code = if speaks == Speaks::PcpRefuses { 2 } else { 0 };
            let lifetime = asked.lifetime_s.min(grants_s).to_be_bytes();
            let head = [&[2, 0x81, 0, code][..], &lifetime, &[0, 0, 0, 9], &[0; 12]].concat();
            let address = [&[0_u8; 10][..], &[0xff, 0xff], &public].concat();
            [&head[..], &request[24..44], &address].concat()
        }
        other => panic!("what is {:?}?", (other.1, other.2)),
    }
}

/// A search by SSDP, a description and control by SOAP.
fn upnp(at: Ipv4Addr, public: [u8; 4], tell: Sender<Asked>) {
    let pages = TcpListener::bind((at, 0)).unwrap();
    let home: SocketAddr = pages.local_addr().unwrap();
    let searches = UdpSocket::bind((at, 1900)).unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((_, from)) = searches.recv_from(&mut buffer) {
            let answer = format!("HTTP/1.1 200 OK\r\nLOCATION: http://{home}/router.xml\r\n\r\n");
            searches.send_to(answer.as_bytes(), from).unwrap();
        }
    });
    thread::spawn(move || {
        for stream in pages.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream);
            let body = page(&request, public, &tell);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\nConnection: close\r\n\
                 \r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
}

/// Head and body of a request of HTTP.
fn read_request(stream: &mut std::net::TcpStream) -> String {
    let (mut request, mut buffer) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return request;
            }
        }
        let length = stream.read(&mut buffer).unwrap();
        request.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
}

/// The actions, and what each takes in.
fn description() -> String {
    let protocol = ["NewRemoteHost", "NewExternalPort", "NewProtocol"];
    let inside = ["NewInternalPort", "NewInternalClient", "NewEnabled"];
    let rest = ["NewPortMappingDescription", "NewLeaseDuration"];
    let action = |name: &str, arguments: &[&str]| {
        let argument = |name: &&str| {
            format!("<argument><name>{name}</name><direction>in</direction></argument>")
        };
        let arguments: String = arguments.iter().map(argument).collect();
        format!("<action><name>{name}</name><argumentList>{arguments}</argumentList></action>")
    };
    let add = action("AddPortMapping", &[&protocol[..], &inside, &rest].concat());
    let delete = action("DeletePortMapping", &protocol);
    format!("<?xml version=\"1.0\"?><scpd><actionList>{add}{delete}</actionList></scpd>")
}

const SERVICE: &str = "urn:schemas-upnp-org:service:WANIPConnection:1";

fn page(request: &str, public: [u8; 4], tell: &Sender<Asked>) -> String {
    let between = |name: &str| {
        let value = request.split_once(&format!("<{name}>")).map(|(_, rest)| rest);
        value.and_then(|rest| rest.split('<').next()).and_then(|value| value.parse().ok())
    };
    let soap = |name: &str, inside: &str| {
        format!(
            "<?xml version=\"1.0\"?><s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">\
             <s:Body><u:{name}Response xmlns:u=\"{SERVICE}\">{inside}</u:{name}Response></s:Body>\
             </s:Envelope>"
        )
    };
    if request.starts_with("GET /router.xml") {
        return format!(
            "<?xml version=\"1.0\"?><root><device><deviceType>urn:schemas-upnp-org:device:\
             InternetGatewayDevice:1</deviceType><deviceList><device><deviceType>urn:schemas-upnp-org:\
             device:WANDevice:1</deviceType><deviceList><device><deviceType>urn:schemas-upnp-org:device:\
             WANConnectionDevice:1</deviceType><serviceList><service><serviceType>{SERVICE}</serviceType>\
             <SCPDURL>/scpd.xml</SCPDURL><controlURL>/control</controlURL></service></serviceList></device>\
             </deviceList></device></deviceList></device></root>"
        );
    }
    if request.starts_with("GET /scpd.xml") {
        return description();
    }
    if request.contains("#GetExternalIPAddress") {
        let ip = Ipv4Addr::from(public);
        let inside = format!("<NewExternalIPAddress>{ip}</NewExternalIPAddress>");
        return soap("GetExternalIPAddress", &inside);
    }
    let outside: u16 = between("NewExternalPort").unwrap();
    let is_removal = request.contains("#DeletePortMapping");
    assert!(request.contains("<NewProtocol>UDP</NewProtocol>"), "{request}");
    let inside = between("NewInternalPort").unwrap_or(outside);
    let lifetime = between("NewLeaseDuration").unwrap_or(0);
    tell.send(Asked { lifetime_s: lifetime.into(), inside, outside }).unwrap();
    soap(if is_removal { "DeletePortMapping" } else { "AddPortMapping" }, "")
}

/// A server that asks this router.
fn serve(dir: &Dir, router: Ipv4Addr, when: &str) -> Program {
    let (file, gateway) = (dir.file("world.bin", b"a world"), router.to_string());
    let bind = ["--bind", "127.0.0.1:0"];
    let args = ["serve", &file, "--json", when, "--gateway", &gateway];
    Program::start(&[&args[..], &bind].concat())
}

/// Ends it, and says what it said.
fn end(program: Program) -> Finished {
    program.signal("INT");
    program.finish()
}

/// Where the ticket leads first, and the port that the server has.
fn first_address(program: &Program) -> (SocketAddr, u16) {
    let listening = program.event("listening");
    let ticket = Ticket::parse(listening["ticket"].as_str().unwrap()).unwrap();
    let local: SocketAddr = listening["addr"].as_str().unwrap().parse().unwrap();
    assert_eq!(ticket.addresses()[1..], [local]);
    (ticket.addresses()[0], local.port())
}

#[test]
fn every_protocol_maps_the_port_and_removes_the_mapping_at_the_end() {
    let dir = Dir::new();
    let kinds = [(Speaks::Pcp, "PCP"), (Speaks::NatPmp, "NAT-PMP"), (Speaks::Upnp, "UPnP")];
    for (last, (speaks, by)) in (1..).zip(kinds) {
        let public = [198, 51, 100, last];
        let router = router(last, speaks, public, 7200);
        let program = serve(&dir, router.at, "--map-port");
        let mapped = program.event("mapped");
        let (address, port) = first_address(&program);
        assert_eq!(address, SocketAddr::from((public, port)));
        assert_eq!((&mapped["by"], &mapped["addr"]), (&by.into(), &address.to_string().into()));
        assert_eq!(mapped["lifetime_s"], 3600, "a killed program leaves it for an hour");
        assert_eq!(router.next(), Asked { lifetime_s: 3600, inside: port, outside: port });
        assert_eq!(end(program).code, Some(0));
        let removed = router.next();
        assert_eq!((removed.lifetime_s, removed.inside), (0, port), "{by}");
    }
}

#[test]
fn a_mapping_is_renewed_before_it_ends() {
    let dir = Dir::new();
    let router = router(11, Speaks::Pcp, [198, 51, 100, 11], 2);
    let program = serve(&dir, router.at, "--map-port");
    let (address, port) = first_address(&program);
    assert_eq!(router.next().lifetime_s, 3600);
    let again = router.next();
    assert_eq!((again.inside, again.outside), (port, address.port()));
    assert!(again.lifetime_s > 0);
    end(program);
}

#[test]
fn an_address_that_is_not_public_is_not_in_the_ticket() {
    let dir = Dir::new();
    let router = router(21, Speaks::Pcp, [100, 64, 0, 7], 7200);
    let program = serve(&dir, router.at, "--map-port");
    let listening = program.event("listening");
    let ticket = Ticket::parse(listening["ticket"].as_str().unwrap()).unwrap();
    assert_eq!(ticket.addresses().len(), 1);
    assert_eq!(
        (router.next().lifetime_s, router.next().lifetime_s),
        (3600, 0),
        "and it is removed"
    );
    let run = end(program);
    let warning = run.event("warning")["message"].as_str().unwrap().to_owned();
    assert!(
        warning.contains("100.64.0.0/10") && warning.contains("without a mapping"),
        "{warning}"
    );
}

#[test]
fn without_a_router_that_does_it_a_word_says_so() {
    let dir = Dir::new();
    // No router listens at the ports of this address.
    let nobody = Ipv4Addr::new(127, 0, 53, 31);
    let program = serve(&dir, nobody, "--map-port");
    program.event("listening");
    let warning = end(program).event("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("neither PCP, NAT-PMP nor UPnP"), "{warning}");
    assert!(warning.contains("--address") && warning.contains("going on"), "{warning}");
    let message = serve(&dir, nobody, "--map-port=required").finish().error_of(3, "no-answer");
    assert!(message.contains("no mapping in the router"), "{message}");

    let strict = router(41, Speaks::PcpRefuses, [198, 51, 100, 41], 7200);
    let run = serve(&dir, strict.at, "--map-port=required").finish();
    // No peer of haulier refused, so that there is no code of one.
    let last = run.events().pop().unwrap();
    assert_eq!((run.code, &last["kind"]), (Some(3), &"unreachable".into()), "{}", run.what);
    assert!(last["message"].as_str().unwrap().contains("Not authorized"), "{last}");
}

// Which frames of an interface go to AF_XDP sockets, and which pass to the kernel's own network stack.
//
// A frame is taken only if it is beyond doubt a plain UDP datagram to an address and port that somebody asked for. All
// else passes, as if this program were not there: fragments, options, other protocols, what is damaged. Passing is always
// safe, because ordinary sockets stay open on the same addresses.
//
// Needs no headers of any system: what it uses of the kernel's interface is declared here. `cargo xtask bpf` compiles it.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// ---- The kernel's interface (include/uapi/linux/bpf.h)

struct xdp_md {
    u32 data;
    u32 data_end;
    u32 data_meta;
    u32 ingress_ifindex;
    u32 rx_queue_index;
    u32 egress_ifindex;
};

enum { XDP_DROP = 1, XDP_PASS = 2, XDP_REDIRECT = 4 };
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PER_CPU_ARRAY = 6, MAP_PREFIXES = 11, MAP_SOCKETS = 17 };
enum { NO_PREALLOCATION = 1 };

static void *(*look_up)(const void *map, const void *key) = (void *)1;
static long (*find_route)(void *context, void *route, int octets, u32 flags) = (void *)69;
static long (*redirect)(const void *map, u64 key, u64 otherwise) = (void *)51;

// ---- Maps. Their shapes are read by the loader, which may give some of them more entries.

struct map {
    u32 kind, key_octets, value_octets, entries, flags;
};

struct settings {
    // Frames that are longer would not fit into the memory of a socket.
    u32 frame_octets_max;
    // Whether what is no plausible DNS query passes.
    u32 queries_only;
    // Whether there are any blocked prefixes: [0] of IPv4, [1] of IPv6.
    u32 has_blocks[2];
    // Whether only what the kernel would answer the same way is taken.
    u32 checks_routes;
};

struct destination_v4 {
    u32 address;
    u16 port;
    u16 zero;
};

struct destination_v6 {
    u32 address[4];
    u16 port;
    u16 zero;
};

struct prefix_v4 {
    u32 bits;
    u32 address;
};

struct prefix_v6 {
    u32 bits;
    u32 address[4];
};

struct block {
    u32 action;
    u32 zero;
    u64 frames;
};

enum { ACTION_DROP = 0, ACTION_PASS = 1, ACTION_TAKE = 2 };

// What became of a frame; the index of its counter.
enum verdict {
    TAKEN,       // to a socket
    NO_SOCKET,   // meant for a socket, but its queue has none
    DROPPED,     // blocked
    EXCEPTED,    // blocked, with the action to pass
    IMPLAUSIBLE, // to a known destination, but no DNS query
    ELSEWHERE,   // to an unknown destination
    UNFIT,       // fragments, options, damaged, too long
    OTHER,       // no UDP
    MISROUTED,   // the kernel would send the reply elsewhere
    VERDICTS
};

struct map settings SECTION("maps") = { MAP_ARRAY, 4, sizeof(struct settings), 1, 0 };
struct map destinations_v4 SECTION("maps") = { MAP_HASH, sizeof(struct destination_v4), 4, 256, 0 };
struct map destinations_v6 SECTION("maps") = { MAP_HASH, sizeof(struct destination_v6), 4, 256, 0 };
struct map blocked_v4 SECTION("maps") = { MAP_PREFIXES, sizeof(struct prefix_v4), sizeof(struct block), 65536, NO_PREALLOCATION };
struct map blocked_v6 SECTION("maps") = { MAP_PREFIXES, sizeof(struct prefix_v6), sizeof(struct block), 65536, NO_PREALLOCATION };
struct map sockets SECTION("maps") = { MAP_SOCKETS, 4, 4, 64, 0 };
struct map counters SECTION("maps") = { MAP_PER_CPU_ARRAY, 4, 8, VERDICTS, 0 };

// ---- Headers

struct ethernet {
    u8 destination[6];
    u8 source[6];
    u16 type;
};

struct tag {
    u16 bits;
    u16 type;
};

struct ipv4 {
    u8 version;
    u8 service;
    u16 length;
    u16 identification;
    u16 fragment;
    u8 hops;
    u8 protocol;
    u16 checksum;
    u32 source;
    u32 destination;
};

struct ipv6 {
    u32 version;
    u16 length;
    u8 next;
    u8 hops;
    u32 source[4];
    u32 destination[4];
};

struct udp {
    u16 source;
    u16 destination;
    u16 length;
    u16 checksum;
};

// The first octets of a DNS message.
struct dns {
    u16 id;
    u8 flags;
    u8 more_flags;
    u16 counts[4];
};

enum { UDP = 17, RESPONSE = 0x80 };

// ---- Routes (`struct bpf_fib_lookup`)

struct route {
    u8 family;
    u8 protocol;
    u16 ports[2];
    u16 length;
    u32 interface;
    u32 service;
    u32 source[4];
    u32 destination[4];
    u16 vlan[2];
    u8 source_mac[6];
    u8 destination_mac[6];
};

enum { FAMILY_IPV4 = 2, FAMILY_IPV6 = 10, LOOPBACK = 1 };

INLINE u16 swap(u16 value)
{
    return __builtin_bswap16(value);
}

// What follows the IP header of so many octets, of which the packet has `length` in all.
INLINE int is_plausible(const struct udp *udp, u32 length, void *end, int queries_only, int *is_whole)
{
    u32 octets = swap(udp->length);
    *is_whole = octets >= sizeof(*udp) && octets <= length;
    if (!*is_whole || !queries_only)
        return 1;
    const struct dns *dns = (const void *)(udp + 1);
    if ((void *)(dns + 1) > end || octets < sizeof(*udp) + sizeof(*dns))
        return 0;
    return !(dns->flags & RESPONSE);
}

// Returns what is to be done with a frame of a blocked source.
INLINE u32 action_of(struct block *block)
{
    if (!block)
        return ACTION_TAKE;
    __sync_fetch_and_add(&block->frames, 1);
    return block->action;
}

// Returns whether the kernel would send a reply by the interface and to the station that the query came from. What comes
// in by the loopback interface is, to the routing rules, what this machine itself sends.
INLINE int is_routed_back(struct xdp_md *context, struct route *route, const struct ethernet *ethernet)
{
    route->protocol = UDP;
    route->interface = LOOPBACK;
    if (find_route(context, route, sizeof(*route), 0) != 0 || route->interface != context->ingress_ifindex)
        return 0;
    int differs = 0;
    for (int i = 0; i < 6; i++)
        differs |= route->destination_mac[i] ^ ethernet->source[i];
    return !differs;
}

// Says what is to become of a frame, as far as it alone decides that.
INLINE enum verdict judge(struct xdp_md *context)
{
    void *start = (void *)(u64)context->data;
    void *end = (void *)(u64)context->data_end;
    struct ethernet *ethernet = start;
    if ((void *)(ethernet + 1) > end)
        return UNFIT;
    void *packet = ethernet + 1;
    u16 type = ethernet->type;
    if (type == swap(0x8100)) {
        struct tag *tag = packet;
        if ((void *)(tag + 1) > end)
            return UNFIT;
        type = tag->type;
        packet = tag + 1;
    }

    u32 key = 0;
    struct settings *set = look_up(&settings, &key);
    if (!set)
        return OTHER;

    struct udp *udp;
    u32 length;
    u32 action = ACTION_TAKE;
    int is_whole = 0;
    struct route route = {};

    if (type == swap(0x0800)) {
        struct ipv4 *ip = packet;
        if ((void *)(ip + 1) > end)
            return UNFIT;
        if (ip->protocol != UDP)
            return OTHER;
        length = swap(ip->length);
        if (ip->version != 0x45 || (ip->fragment & swap(0x3fff)))
            return UNFIT;
        udp = (void *)(ip + 1);
        if ((void *)(udp + 1) > end)
            return UNFIT;
        struct destination_v4 to = { ip->destination, udp->destination, 0 };
        if (!look_up(&destinations_v4, &to))
            return ELSEWHERE;
        // The whole packet must be in this one buffer.
        if (length < sizeof(*ip) + sizeof(*udp) || length > (u64)(end - packet))
            return UNFIT;
        length -= sizeof(*ip);
        if (!is_plausible(udp, length, end, set->queries_only, &is_whole))
            return IMPLAUSIBLE;
        route.family = FAMILY_IPV4;
        route.source[0] = ip->destination;
        route.destination[0] = ip->source;
        if (set->has_blocks[0]) {
            struct prefix_v4 from = { 32, ip->source };
            action = action_of(look_up(&blocked_v4, &from));
        }
    } else if (type == swap(0x86dd)) {
        struct ipv6 *ip = packet;
        if ((void *)(ip + 1) > end)
            return UNFIT;
        if (ip->next != UDP)
            return OTHER;
        if ((*(u8 *)ip >> 4) != 6)
            return UNFIT;
        udp = (void *)(ip + 1);
        if ((void *)(udp + 1) > end)
            return UNFIT;
        struct destination_v6 to = {
            { ip->destination[0], ip->destination[1], ip->destination[2], ip->destination[3] },
            udp->destination,
            0,
        };
        if (!look_up(&destinations_v6, &to))
            return ELSEWHERE;
        length = swap(ip->length);
        if (length < sizeof(*udp) || length > (u64)(end - (void *)udp))
            return UNFIT;
        if (!is_plausible(udp, length, end, set->queries_only, &is_whole))
            return IMPLAUSIBLE;
        route.family = FAMILY_IPV6;
        for (int i = 0; i < 4; i++) {
            route.source[i] = ip->destination[i];
            route.destination[i] = ip->source[i];
        }
        if (set->has_blocks[1]) {
            struct prefix_v6 from = {
                128,
                { ip->source[0], ip->source[1], ip->source[2], ip->source[3] },
            };
            action = action_of(look_up(&blocked_v6, &from));
        }
    } else {
        return OTHER;
    }

    if (action == ACTION_DROP)
        return DROPPED;
    if (action == ACTION_PASS)
        return EXCEPTED;
    // A station that is a group of stations cannot be answered as one, and what is too long would be lost.
    if (!is_whole || ((ethernet->destination[0] | ethernet->source[0]) & 1) || end - start > set->frame_octets_max)
        return UNFIT;
    if (set->checks_routes && !is_routed_back(context, &route, ethernet))
        return MISROUTED;
    return TAKEN;
}

SECTION("xdp") int filter(struct xdp_md *context)
{
    u32 verdict = judge(context);
    int action = XDP_PASS;
    if (verdict == DROPPED) {
        action = XDP_DROP;
    } else if (verdict == TAKEN) {
        action = redirect(&sockets, context->rx_queue_index, XDP_PASS);
        if (action != XDP_REDIRECT)
            verdict = NO_SOCKET;
    }
    u64 *counter = look_up(&counters, &verdict);
    if (counter)
        *counter += 1;
    return action;
}

// Asking for routes is for programs that may be used under the GPL, so this one may be, as well as under its own licence.
char licence[] SECTION("license") = "Dual MIT/GPL";

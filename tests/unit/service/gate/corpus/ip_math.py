import ipaddress

net = ipaddress.ip_network("192.168.10.0/24")
print(net.num_addresses, list(net.hosts())[0], ipaddress.ip_address(int(net.network_address) + 9))
